// pure

/** What was begun while the agent ran (a walk over its files) has come to an end after so many looks. */
const LOOKS_AFTER = 40
/** And an agent that rests is looked at now and then all the same. */
const EVERY = 60

/**
 * What an agent wrote is looked at while it runs and for some time after: who uses no processor writes nothing. With
 * many idle agents these looks are most of what a daemon does.
 */
export class Rest<Reading> {
  #cpu: number | null = null
  #looks = 0
  #last: { readonly reading: Reading } | undefined

  /** Whether nothing is to be looked at this time, which then counts as a look. What could not be read is never skipped. */
  skips(cpu: number | null): boolean {
    const looks = this.#looks + 1
    if (cpu === null || cpu !== this.#cpu || this.#last === undefined) return false
    if (looks < LOOKS_AFTER || looks % EVERY === 0) return false
    this.#looks = looks
    return true
  }

  /** `cpu` is what the agent has used of the processor until now; null where nobody knows. */
  read(cpu: number | null, look: () => Reading): Reading {
    this.#looks = cpu === null || cpu !== this.#cpu ? 0 : this.#looks + 1
    this.#cpu = cpu
    const due = this.#looks < LOOKS_AFTER || this.#looks % EVERY === 0
    if (this.#last !== undefined && !due) return this.#last.reading
    // What cannot be read is tried again the next time, not remembered.
    this.#last = undefined
    const reading = look()
    this.#last = { reading }
    return reading
  }
}
