/** An answer that costs something and stays true for a while: whoever asks meanwhile shares it. */
export class Recent<Value> {
  readonly #maxAgeMs: number
  readonly #now: () => number
  #found: { value: Promise<Value>; at: number } | null = null

  constructor(maxAgeMs: number, now: () => number = () => performance.now()) {
    this.#maxAgeMs = maxAgeMs
    this.#now = now
  }

  /** At most `maxAgeMs` old. */
  get(find: () => Promise<Value>): Promise<Value> {
    const found = this.#found
    if (found !== null && this.#now() - found.at <= this.#maxAgeMs) return found.value
    return this.renew(find)
  }

  /** Found now. */
  renew(find: () => Promise<Value>): Promise<Value> {
    const found = { value: find(), at: this.#now() }
    this.#found = found
    // A failure is told to who asked, and kept for nobody.
    found.value.catch(() => {
      if (this.#found === found) this.#found = null
    })
    return found.value
  }
}
