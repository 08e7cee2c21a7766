// pure
import { Buffer } from 'node:buffer'
import type { Operation } from './format.ts'

const CHUNK = 256 * 1024

/**
 * The operations of a commit, outside the heap in the form that the journal has them in: there may be as many as there
 * are changes, and each is looked at a few times from the first to the last.
 */
export class PackedOperations implements Iterable<Operation> {
  readonly #chunks: Buffer[] = []
  #texts: string[] = []
  #size = 0

  push(operation: Operation): void {
    const text = JSON.stringify(operation)
    this.#texts.push(text)
    this.#size += text.length
    if (this.#size >= CHUNK) this.#seal()
  }

  #seal(): void {
    this.#chunks.push(Buffer.from(this.#texts.join('\n')))
    this.#texts = []
    this.#size = 0
  }

  *[Symbol.iterator](): Generator<Operation> {
    if (this.#texts.length > 0) this.#seal()
    for (const chunk of this.#chunks)
      for (const text of chunk.toString().split('\n')) yield JSON.parse(text) as Operation
  }
}
