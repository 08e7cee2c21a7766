// pure
import type { SpawnOp } from '../contract/spawn.ts'

/** So many kinds of start are kept (bases, profiles, users); a root takes a fifth of a megabyte. Others are planned anew. */
const KINDS = 8

/**
 * What is the same in many starts: planned once, and marked, so that it is laid out in memory once as well. Nothing of
 * one start may be in it that another one must not have: no descriptor, no name of a branch, no content. The key says
 * all that it was made from.
 */
export class KeptOps<Plan> {
  readonly #plans = new Map<string, Plan>()

  /** What was planned for this key; the one that was asked for longest ago makes room. */
  of(key: string, plan: () => Plan): Plan {
    const known = this.#plans.get(key)
    if (known !== undefined) {
      this.#plans.delete(key)
      this.#plans.set(key, known)
      return known
    }
    const made = plan()
    const [oldest] = this.#plans.keys()
    if (oldest !== undefined && this.#plans.size >= KINDS) this.#plans.delete(oldest)
    this.#plans.set(key, made)
    return made
  }
}

/** Bytes into which a result is written belong to one start. */
export const keep = (ops: readonly SpawnOp[]): readonly SpawnOp[] =>
  ops.map((op) => (op.patch === undefined ? { ...op, kept: true } : op))
