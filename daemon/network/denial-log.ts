import type { DenialLayer } from '../contract/denial.ts'
import type { PuzzledEvent } from '../contract/events.ts'

export interface BlockedRow {
  readonly layer: DenialLayer
  readonly subject: string
  readonly rule: string
  readonly message: string
  readonly help: string | undefined
  readonly first: string
  count: number
}

/** Rows that are kept; further kinds of denial are counted in one row. */
const MAX_ROWS = 500
/** Events per kind of denial and minute: an agent that tries in a loop must not drown the others. */
const EVENTS_PER_MINUTE = 3

/** What was blocked and why, for the branch's report, and one event for each kind of it. */
export class DenialLog {
  readonly #branch: string
  readonly #publish: (event: PuzzledEvent) => void
  readonly #count: (layer: DenialLayer) => void
  readonly #rows = new Map<string, BlockedRow>()
  #minute = 0
  readonly #published = new Map<string, number>()

  constructor(
    branch: string,
    publish: (event: PuzzledEvent) => void,
    count: (layer: DenialLayer) => void = () => undefined,
  ) {
    this.#branch = branch
    this.#publish = publish
    this.#count = count
  }

  add(layer: DenialLayer, subject: string, rule: string, message: string, help?: string): void {
    const shown = printable(subject)
    const time = new Date().toISOString()
    const key = `${layer} ${rule} ${shown}`
    const row =
      this.#rows.get(key) ??
      this.#newRow(key, { layer, subject: shown, rule, message, help, first: time, count: 0 })
    row.count++
    this.#count(layer)
    if (!this.#mayPublish(key)) return
    const event = {
      kind: 'denial',
      branch: this.#branch,
      time,
      layer,
      subject: shown,
      rule,
      message,
    } as const
    this.#publish(help === undefined ? event : { ...event, help })
  }

  #newRow(key: string, row: BlockedRow): BlockedRow {
    if (this.#rows.size < MAX_ROWS) {
      this.#rows.set(key, row)
      return row
    }
    const more = this.#rows.get('') ?? { ...row, subject: 'others', message: 'Further denials, not listed' }
    this.#rows.set('', more)
    return more
  }

  #mayPublish(key: string): boolean {
    const minute = Math.floor(performance.now() / 60_000)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#published.clear()
    }
    const times = (this.#published.get(key) ?? 0) + 1
    // The keys are the agent's words: what is not published any more is not remembered either.
    if (times === 1 && this.#published.size >= MAX_ROWS) return false
    this.#published.set(key, times)
    return times <= EVENTS_PER_MINUTE
  }

  rows(): readonly BlockedRow[] {
    return [...this.#rows.values()]
  }
}

/** Subjects are the agent's words: nothing in them may move a cursor or start a new record. */
const printable = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]/g, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
    .slice(0, 400)
