import type { PuzzledEvent } from '../contract/events.ts'
import type { NetworkCounters } from './branch-queue.ts'
import type { BlockedRow } from './denial-log.ts'

/** A network whose kernel counts packets that went nowhere. */
export interface Dropping {
  dropped(): readonly BlockedRow[]
}

interface Watched {
  readonly network: Dropping
  readonly cpu: () => number | null
  /** Of the processor, at the last look; null where nobody knew. */
  cpuThen: number | null
  /** Since the last look. */
  seconds: number
  /** What was told of each reason. */
  readonly told: Map<string, number>
  minute: number
  events: number
}

const EVERY_MS = 1_000
/** Of the event loop, in each second: a look is a dialogue with the kernel of less than a millisecond. */
const BUDGET_MS = 10
/** The kernel repeats a packet by itself when nobody answers, also for an agent that rests. */
const RESTING_SECONDS = 60
/** An agent that sends packets in a loop must not drown the others. What is not told now is told later, together. */
const EVENTS_PER_MINUTE = 6

/** Makes events of packets that were dropped, within a second or two of the first one, and tells the rest at the end. */
export class DropWatch {
  readonly #publish: (event: PuzzledEvent) => void
  readonly #counters: NetworkCounters | undefined
  readonly #watched = new Map<string, Watched>()
  #clock: NodeJS.Timeout | undefined

  constructor(publish: (event: PuzzledEvent) => void, counters: NetworkCounters | undefined) {
    this.#publish = publish
    this.#counters = counters
  }

  /** `cpu` is what the agent has used of the processor, as far as it is known: who used none has sent nothing. */
  begin(branch: string, network: Dropping, cpu: () => number | null = () => null): void {
    const began = { cpuThen: null, seconds: 0, minute: 0, events: 0 }
    this.#watched.set(branch, { network, cpu, told: new Map(), ...began })
    this.#clock ??= setInterval(() => this.tick(), EVERY_MS).unref()
  }

  /** Tells what was not told yet. To be called while the counters can still be read. */
  end(branch: string): void {
    const watched = this.#watched.get(branch)
    if (watched === undefined) return
    this.#look(branch, watched, true)
    this.#watched.delete(branch)
    if (this.#watched.size > 0) return
    clearInterval(this.#clock)
    this.#clock = undefined
  }

  /** As many branches as the budget allows, and with the next tick the ones behind them. */
  tick(): void {
    const until = performance.now() + BUDGET_MS
    for (const [branch, watched] of [...this.#watched]) {
      if (rests(watched)) continue
      // To the end of the line, before anything can fail.
      this.#watched.delete(branch)
      if (this.#look(branch, watched, false)) this.#watched.set(branch, watched)
      if (performance.now() > until) return
    }
  }

  /** What was read of the processor before the look: what is sent meanwhile is a reason to look again. */
  #look(branch: string, watched: Watched, last: boolean): boolean {
    watched.cpuThen = watched.cpu()
    watched.seconds = 0
    return this.#count(branch, watched, last)
  }

  /** A count that cannot be read ends the looking, not the network. */
  #count(branch: string, watched: Watched, last: boolean): boolean {
    const time = new Date().toISOString()
    try {
      for (const row of watched.network.dropped()) this.#tell(branch, watched, row, time, last)
      return true
    } catch (error) {
      const message = `Dropped packets could not be counted: ${error}`
      this.#publish({ kind: 'warning', branch, time, message })
      return false
    }
  }

  #tell(branch: string, watched: Watched, row: BlockedRow, time: string, last: boolean): void {
    const { layer, subject, rule, message, help, count } = row
    const fresh = count - (watched.told.get(rule) ?? 0)
    if (fresh <= 0 || !(last || this.#mayTell(watched))) return
    watched.told.set(rule, count)
    this.#counters?.denied(layer, fresh)
    const event = {
      kind: 'denial',
      branch,
      time,
      layer,
      rule,
      message,
      subject: `${fresh} ${subject}`,
    } as const
    this.#publish(help === undefined ? event : { ...event, help })
  }

  #mayTell(watched: Watched): boolean {
    const minute = Math.floor(performance.now() / 60_000)
    if (minute !== watched.minute) Object.assign(watched, { minute, events: 0 })
    return ++watched.events <= EVENTS_PER_MINUTE
  }
}

function rests(watched: Watched): boolean {
  const cpu = watched.cpu()
  return cpu !== null && cpu === watched.cpuThen && ++watched.seconds < RESTING_SECONDS
}
