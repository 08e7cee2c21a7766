import type { BudgetKind, Budgets } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'
import {
  type BudgetExceeded,
  type Crossing,
  hasRoom,
  judge,
  passed,
  passedText,
  type Said,
  WARNING_PERCENT,
} from './ledger.ts'
import { type Amounts, checkAmount, optionText } from './limits.ts'
import { isWorthKeeping, onTop, spentOf } from './spent.ts'

/** What the meter needs of the outside; it knows no kernel. */
export interface MeterPorts {
  /** What is used now, besides wall time. A kind that nobody can read is left out. */
  readings(): Promise<Amounts>
  /** What the ended agent has left behind, to the last byte; throws where that cannot be known. */
  left?(): Promise<Amounts>
  /** Whether an agent that rests can have used no more of anything but wall time; left out where nobody knows. */
  quiet?(): boolean
  freeze(): Promise<unknown>
  thaw(): Promise<void>
  kill(): Promise<void>
  /** Crossings of 90 and 100 percent, in order. */
  announce(crossing: Crossing): void
  /** The agent stands still, or is ended; called after it is. */
  exceeded(what: BudgetExceeded): void
  /**
   * Readings failed, so nobody knows what the agent uses: it stands still or is ended, as at a limit. With `exceeded`
   * it is known that it used too much, and stopping it failed; that is tried again.
   */
  failed(error: unknown, action: Budgets['atLimit'], exceeded: BudgetExceeded | null): void
  /** The agent has ended, and only then was it seen that it had used too much, or that nobody can know. */
  passed?(message: string, what: Omit<Crossing, 'percent'> | null): void
  /** A limit was extended: for who holds it in another place than here (the exec gate, a quota). */
  extended?(kind: BudgetKind, limit: number): void
  /** Milliseconds of a clock that never goes back. */
  now(): number
  /** What was used up for good, whenever it is worth putting on record. */
  spent?(used: Amounts): void
}

export interface End {
  readonly spent: Amounts
  /** What was seen only then: a budget that was passed, or that nobody can know; a sentence. */
  readonly passed: string | null
}

/** How long a budget may be passed unnoticed. Memory, processes and disk are held by the kernel where it can. */
const INTERVAL_MILLIS = 250

/**
 * Watches the budgets of one branch from its start to its end. Time in which the agent stands still, for a budget or
 * because it was asked to, does not count: a person who thinks for an hour must not find that the hour was used up.
 */
export class Meter {
  #limits: Amounts
  readonly #atLimit: Budgets['atLimit']
  readonly #ports: MeterPorts
  readonly #began: number
  #said: Said = {}
  #exceeded: BudgetExceeded | null = null
  #acted = false
  #failed = false
  #frozenAt: number | null = null
  #restsSince: number | null = null
  #frozenMillis = 0
  #wallAt = 0
  #timer: NodeJS.Timeout | undefined
  #busy: Promise<void> = Promise.resolve()
  #stopped = false
  readonly #before: Amounts
  #last: Amounts
  #kept: Amounts

  /** `before` is what earlier starts have used up for good. */
  constructor(limits: Amounts, atLimit: Budgets['atLimit'], ports: MeterPorts, before: Amounts = {}) {
    this.#before = before
    this.#last = before
    this.#kept = before
    this.#limits = limits
    this.#atLimit = atLimit
    this.#ports = ports
    this.#began = ports.now()
  }

  /** Why the agent stands still; null while it may run. */
  get exceeded(): BudgetExceeded | null {
    return this.#exceeded
  }

  /** Whether it has stopped the agent, for a budget or because it could not read one. */
  get acted(): boolean {
    return this.#acted
  }

  get limits(): Amounts {
    return this.#limits
  }

  start(): void {
    this.#schedule()
  }

  /**
   * The agent has ended. Answers what was used up for good, as far as it could be read. `byItself`: whatever was done at a
   * limit came too late (its output was still being read), and is no judgement.
   */
  async stop(byItself = false): Promise<End> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#busy
    await this.#usage().catch(() => undefined)
    const spent = spentOf(this.#last, this.#limits)
    return { spent, passed: this.#acted && !byItself ? null : await this.#lastWord() }
  }

  /** Readings come now and then, and many an agent is over before the first one. */
  async #lastWord(): Promise<string | null> {
    let found: ReturnType<typeof passed> = null
    let message = ''
    try {
      found = passed(atLeast((await this.#ports.left?.()) ?? {}, this.#last), this.#limits)
      if (found === null) return null
      this.#ports.announce({ ...found, percent: 100 })
      message = passedText(found)
    } catch (error) {
      message = `Nobody can know what the ended agent used: ${error}`
    }
    this.#ports.passed?.(message, found)
    return message
  }

  /** One reading, judged and acted on. Calls that overlap share one. */
  check(): Promise<void> {
    this.#busy = this.#busy.then(() => this.#check())
    return this.#busy
  }

  /**
   * More of one budget. A branch that stands still for a budget goes on when every budget has room again. A freeze that has
   * begun is waited for: the extension may be the answer to its announcement, and thawing what is not frozen yet would
   * leave an agent that runs and is held to stand still.
   */
  extend(kind: BudgetKind, by: number): Promise<{ resumed: boolean }> {
    const extended = this.#busy.then(() => this.#extend(kind, by))
    this.#busy = extended.then(
      () => undefined,
      () => undefined,
    )
    return extended
  }

  /** What is used, as of now; nothing is judged, and no freeze that takes its time is waited for. */
  used(): Promise<Amounts> {
    return this.#usage()
  }

  /** Somebody else makes the agent stand still: it uses nothing, and whoever wants it to go on says so to them. */
  rest(): Promise<void> {
    this.#busy = this.#busy.then(() => {
      if (this.#frozenAt === null) this.#restsSince ??= this.#ports.now()
      clearTimeout(this.#timer)
    })
    return this.#busy
  }

  goOn(): void {
    if (this.#restsSince !== null) this.#frozenMillis += this.#ports.now() - this.#restsSince
    this.#restsSince = null
    this.#wallAt = 0
    this.#schedule()
  }

  async #extend(kind: BudgetKind, by: number): Promise<{ resumed: boolean }> {
    checkAmount(kind, by)
    const limit = this.#limits[kind]
    if (limit === undefined) throw noLimit(kind)
    this.#limits = { ...this.#limits, [kind]: limit + by }
    this.#wallAt = 0
    this.#ports.extended?.(kind, limit + by)
    if (this.#frozenAt === null) return { resumed: false }
    const used = await this.#usage()
    if (!hasRoom(used, this.#limits)) return { resumed: false }
    this.#frozenMillis += this.#ports.now() - this.#frozenAt
    this.#frozenAt = null
    this.#exceeded = null
    this.#acted = false
    this.#failed = false
    await this.#ports.thaw()
    this.#schedule()
    return { resumed: true }
  }

  async #usage(): Promise<Amounts> {
    const until = this.#frozenAt ?? this.#restsSince ?? this.#ports.now()
    const wall = (until - this.#began - this.#frozenMillis) / 1000
    const used = onTop({ ...(await this.#ports.readings()), wall }, this.#before)
    this.#last = atLeast(used, this.#last)
    return used
  }

  #keep(): void {
    const spent = spentOf(this.#last, this.#limits)
    if (!isWorthKeeping(spent, this.#kept, this.#limits)) return
    this.#kept = spent
    this.#ports.spent?.(spent)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#stopped || this.#acted || this.#restsSince !== null) return
    // All meters at the same moments: a daemon with many idle agents wakes up four times a second, not four times for each.
    const next = INTERVAL_MILLIS - Math.floor(this.#ports.now() % INTERVAL_MILLIS)
    this.#timer = setTimeout(() => {
      if (this.#rests()) this.#schedule()
      else void this.check().then(() => this.#schedule())
    }, next)
    this.#timer.unref()
  }

  /** Many agents that wait for somebody are most of what a daemon has: of them only the processor's clock is read. */
  #rests(): boolean {
    if (this.#failed || this.#ports.now() >= this.#wallAt) return false
    try {
      return this.#ports.quiet?.() === true
    } catch {
      // The whole look meets the same error, and says so.
      return false
    }
  }

  /** When the wall clock alone reaches the next threshold. */
  #nextWall(): number {
    const { wall: limit } = this.#limits
    if (limit === undefined) return Number.POSITIVE_INFINITY
    const used = this.#last.wall ?? 0
    const warning = (limit * WARNING_PERCENT) / 100
    return this.#ports.now() + ((used < warning ? warning : limit) - used) * 1000
  }

  async #check(): Promise<void> {
    if (this.#stopped || this.#acted || this.#restsSince !== null) return
    try {
      this.#exceeded ??= await this.#look()
      if (this.#exceeded === null) return
      await this.#act()
      this.#ports.exceeded(this.#exceeded)
    } catch (error) {
      // Said once; tried until the agent does stand still.
      if (!this.#failed) this.#ports.failed(error, this.#atLimit, this.#exceeded)
      this.#failed = true
      if (this.#acted) return
      await this.#act().catch(() => undefined)
      if (this.#acted && this.#exceeded !== null) this.#ports.exceeded(this.#exceeded)
    }
  }

  /** Announces what was crossed since the last look. */
  async #look(): Promise<BudgetExceeded | null> {
    const { crossings, exceeded, said } = judge(await this.#usage(), this.#limits, this.#atLimit, this.#said)
    this.#said = said
    this.#wallAt = this.#nextWall()
    this.#keep()
    for (const crossing of crossings) this.#ports.announce(crossing)
    return exceeded
  }

  /** Until an extension lets the agent go on, there is nothing more to do after it. */
  async #act(): Promise<void> {
    if (this.#atLimit === 'kill') await this.#ports.kill()
    else {
      this.#frozenAt ??= this.#ports.now()
      await this.#ports.freeze()
    }
    this.#acted = true
  }
}

/** What is counted goes away with what counts it: the most that was ever read stays. */
const atLeast = (used: Amounts, known: Amounts): Amounts => ({
  ...known,
  ...Object.fromEntries(
    Object.entries(used).map(([kind, amount]) => [kind, Math.max(amount, known[kind as BudgetKind] ?? 0)]),
  ),
})

export const noLimit = (kind: BudgetKind): PuzzledError =>
  new PuzzledError('usage', `The branch has no limit of ${kind} to extend`)

/** For whoever wants an agent to go on that stands still for its budget: only more of the budget helps. */
export const exceededError = (what: BudgetExceeded, branch: string): PuzzledError =>
  new PuzzledError('budget-exceeded', what.message, {
    hint:
      what.action === 'freeze'
        ? `puzzlectl budget ${branch} ${what.budget}=${optionText(what.budget, what.limit)}`
        : 'Run it again with a larger budget',
    data: { branch, ...what },
  })
