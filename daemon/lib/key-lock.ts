/** Serialises work per key: calls with one key run one after the other, calls with different keys side by side. */
export class KeyLock<Key> {
  readonly #tails = new Map<Key, Promise<unknown>>()

  async run<Result>(key: Key, work: () => Promise<Result>): Promise<Result> {
    const before = this.#tails.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    // The map must hold a promise that never rejects, or an unhandled rejection follows a failure that was handled.
    const tail = mine.then(
      () => undefined,
      () => undefined,
    )
    this.#tails.set(key, tail)
    try {
      return await mine
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    }
  }
}
