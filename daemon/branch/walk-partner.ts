import { S } from '../kernel/paths.ts'
import { decodeError, type ErrorText, encodeError } from '../lib/worker-link.ts'
import type { HandedIn } from './diff-side-sink.ts'
import type { DiffReceiver } from './diff-sink.ts'
import { DiffWalk } from './diff-walk.ts'
import { Claims, other, type Side, type WalkMemory } from './walk-memory.ts'
import type { Company, Entry, Round, Turn } from './walk-round.ts'

/** What is left of a round, as it is handed to the other thread. Names are latin1, which keeps every byte apart. */
export interface Offer {
  base: number
  gone: boolean
  level: Omit<Round['level'], 'path'> & { path: string }
  entries: { name: string; found: Entry['found'] }[]
  claims: SharedArrayBuffer
}

export type WalkMail =
  | { kind: 'offer'; offer: Offer }
  | { kind: 'found'; found: HandedIn }
  | { kind: 'failed'; error: ErrorText }

/** Waking a thread costs as much as looking at a few files. */
const WORTH_SHARING = 16
/** Who waits deep in a tree takes no other tree on: both would have to fit on its stack. */
const DEEP = 200
const WAIT_MS = 500

export interface PartnerParts {
  side: Side
  memory: WalkMemory
  /** What this thread finds, in whoever's rounds. */
  receiver: DiffReceiver
  post: (mail: WalkMail) => void
  receive: () => WalkMail | undefined
  /** What was found for the other thread, which is told before the round that it was found in is over. */
  handIn: () => HandedIn | undefined
  take: (found: HandedIn) => void
  /** While it waits for the other; throws where that one is gone. */
  waiting: () => void
}

/**
 * One of the two threads that walk the same trees. Whoever has work offers the outermost round that it has open to the
 * other as soon as that one is free; both then take its entries one by one. Who comes to the end of such a round waits
 * for the other to come there too, because the round's descriptors are its own, and takes offers meanwhile.
 */
export class Partner implements Company {
  readonly #parts: PartnerParts
  readonly #open: OpenRound[] = []
  #failure: Error | undefined
  #isAlone = false

  constructor(parts: PartnerParts) {
    this.#parts = parts
  }

  begin(round: Round): Turn {
    const turn = new OpenRound(this, round)
    this.#open.push(turn)
    return turn
  }

  /** How many more names this walk may see, by those that it has seen: nobody knows what is in a directory. */
  outlook(looked: number): number {
    return Math.max(0, ...this.#open.map(({ share }) => looked * share))
  }

  get isOver(): boolean {
    return this.#parts.memory.isOver
  }

  /** Offers what is left of the outermost round to the other thread, where that has nothing to do. */
  offer(): void {
    const { memory, side } = this.#parts
    if (!memory.isFree(other(side))) return
    const turn = this.#open.find((open) => open.isWorthSharing)
    if (turn === undefined || !memory.engage(other(side))) return
    this.#parts.post({ kind: 'offer', offer: turn.offer() })
    memory.call(other(side))
  }

  /** Waits for the other in a round that both had, and takes what it offers meanwhile. */
  await(claims: Claims): void {
    const { memory, side } = this.#parts
    const takes = this.#open.length < DEEP
    while (!claims.isDone && !this.#isAlone) {
      const calls = memory.calls(side)
      if (takes) memory.setFree(side, true)
      this.#read()
      if (claims.isDone) break
      memory.waitCall(side, calls, WAIT_MS)
      if (!claims.isDone) this.#stillThere()
    }
    memory.setFree(side, false)
    this.#read()
  }

  #stillThere(): void {
    try {
      this.#parts.waiting()
    } catch (error) {
      this.#isAlone = true
      this.#parts.memory.end()
      throw error
    }
  }

  /** What the other thread threw in a round of this one. */
  throwTheirs(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Nothing is begun any more, by neither. */
  stop(): void {
    this.#parts.memory.end()
  }

  leave(turn: OpenRound): void {
    const at = this.#open.lastIndexOf(turn)
    if (at >= 0) this.#open.splice(at, 1)
  }

  /** Of a thread that has nothing of its own: takes what is offered until there is nothing more. */
  serve(): void {
    const { memory, side } = this.#parts
    while (!memory.isOver) {
      const calls = memory.calls(side)
      memory.setFree(side, true)
      this.#read()
      if (!memory.isOver) memory.waitCall(side, calls, WAIT_MS)
    }
  }

  #read(): void {
    const { receive, take } = this.#parts
    for (let mail = receive(); mail !== undefined; mail = receive()) {
      if (mail.kind === 'offer') this.#help(mail.offer)
      else if (mail.kind === 'found') take(mail.found)
      else this.#failure ??= decodeError(mail.error)
    }
  }

  #help({ base, gone, level, entries, claims: shared }: Offer): void {
    const { memory, side, receiver, post, handIn } = this.#parts
    const claims = new Claims(shared)
    let changed = false
    try {
      const round = { base, gone, level: { ...level, path: Buffer.from(level.path, 'latin1') } }
      const walk = new DiffWalk(base, receiver, undefined, this)
      changed = walk.each(round, { next: () => this.#claimed(entries, claims) })
      const found = handIn()
      if (found !== undefined) post({ kind: 'found', found })
    } catch (error) {
      memory.end()
      post({ kind: 'failed', error: encodeError(error) })
    }
    claims.done(changed)
    memory.call(other(side))
  }

  #claimed(entries: Offer['entries'], claims: Claims): Entry | undefined {
    if (this.isOver) return undefined
    const entry = entries[claims.claim()]
    return entry === undefined ? undefined : { name: Buffer.from(entry.name, 'latin1'), found: entry.found }
  }
}

/** A round that this thread began, and that it may have shared meanwhile. */
class OpenRound implements Turn {
  readonly #partner: Partner
  readonly #round: Round
  #at = 0
  #claims: Claims | undefined
  #hasEnded = false

  constructor(partner: Partner, round: Round) {
    this.#partner = partner
    this.#round = round
  }

  next(): Entry | undefined {
    if (this.#partner.isOver) return undefined
    this.#partner.offer()
    return this.#round.entries[this.#claims === undefined ? this.#at++ : this.#at + this.#claims.claim()]
  }

  /** What is behind a directory can be anything. */
  get isWorthSharing(): boolean {
    const { entries } = this.#round
    const left = entries.length - this.#at
    if (this.#claims !== undefined || left < 2) return false
    return left >= WORTH_SHARING || entries.slice(this.#at).some(({ found }) => found[0]?.type === S.IFDIR)
  }

  /** How much is left for each that was looked at. */
  get share(): number {
    return (this.#round.entries.length - this.#at) / Math.max(1, this.#at)
  }

  offer(): Offer {
    const { base, gone, level, entries } = this.#round
    this.#claims = new Claims()
    const left = entries.slice(this.#at)
    return {
      ...{ base, gone, level: { ...level, path: level.path.toString('latin1') } },
      entries: left.map(({ name, found }) => ({ name: name.toString('latin1'), found })),
      claims: this.#claims.shared,
    }
  }

  end(): boolean {
    if (this.#claims === undefined) return false
    this.#partner.await(this.#claims)
    this.#hasEnded = true
    this.#partner.throwTheirs()
    return this.#claims.changed
  }

  leave(): void {
    this.#partner.leave(this)
    if (this.#claims === undefined || this.#hasEnded) return
    this.#partner.stop()
    this.#partner.await(this.#claims)
  }
}
