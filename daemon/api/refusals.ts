/** Repetitions within this time are one record. */
const WINDOW_MS = 60_000
/** More different refusals than this in one window are counted together: the log is bounded whatever is tried. */
const MOST_KINDS = 256

export interface Refusal {
  uid: number | null
  what: string
  why: string
}

interface Counted extends Refusal {
  repeated: number
}

const OTHERS: Refusal = { uid: null, what: 'other calls', why: 'too many different ones to be told apart' }

/**
 * Puts refused calls on record: each kind at once when it first happens, and after a while how often it happened again.
 * Somebody who tries in a loop must not fill the disk with records, nor hide one attempt among a hundred thousand.
 */
export class RefusalLog {
  readonly #record: (facts: Refusal & { repeated?: number }) => void
  readonly #counted = new Map<string, Counted>()
  #timer: NodeJS.Timeout | null = null

  constructor(record: (facts: Refusal & { repeated?: number }) => void) {
    this.#record = record
  }

  add(refusal: Refusal): void {
    const key = JSON.stringify([refusal.uid, refusal.what, refusal.why])
    const known = this.#counted.get(key)
    if (known !== undefined) known.repeated++
    else if (this.#counted.size < MOST_KINDS) this.#begin(key, refusal)
    else this.#addOther()
  }

  /** Writes what was counted and begins anew. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const { uid, what, why, repeated } of this.#counted.values())
      if (repeated > 0) this.#record({ uid, what, why, repeated })
    this.#counted.clear()
  }

  #addOther(): void {
    const others = this.#counted.get('')
    if (others !== undefined) others.repeated++
    else this.#counted.set('', { ...OTHERS, repeated: 1 })
  }

  #begin(key: string, refusal: Refusal): void {
    this.#record(refusal)
    this.#counted.set(key, { ...refusal, repeated: 0 })
    this.#timer ??= setTimeout(() => this.flush(), WINDOW_MS).unref()
  }
}
