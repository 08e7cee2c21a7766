// pure
import type { Change } from '../contract/changeset.ts'
import { Writer, writeCanonical, writeIdentity } from './changeset-codec.ts'
import { Arena } from './diff-arena.ts'

/** Changes that are encoded as they come. */
export class EncodedChanges {
  readonly #writer = new Writer()
  readonly arena = new Arena()

  add(change: Change): void {
    writeCanonical(this.#writer, change)
    const canonical = this.#writer.length
    writeIdentity(this.#writer, change.identity, change.old)
    this.arena.add(this.#writer.view(), canonical)
    this.#writer.clear()
  }
}
