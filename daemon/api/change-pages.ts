import type { Change, Changeset } from '../contract/changeset.ts'
import type { ChangesPage, Engine, Selection } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'

/** Putting so many into one message takes the daemon some 50 ms, in which nobody else is served. */
const MOST_CHANGES = 1000
const MOST_BYTES = 4 << 20
/** Changesets that somebody has begun to read. A reader that comes back later has them compared again. */
const MOST_KEPT = 3
const KEPT_MILLIS = 30_000

export interface PageRequest {
  selection: Selection | null
  /** Of the first page; empty to begin. */
  digest: string
  from: number
  limit: number
}

interface Kept {
  changeset: Changeset
  timer: NodeJS.Timeout
}

/**
 * Changesets in pages. All pages of one reading are of one changeset, named by its digest: it is kept while it is read,
 * and where it was not kept it is compared again and must still be the same.
 */
export class ChangePages {
  readonly #kept = new Map<string, Kept>()
  readonly #keptMillis: number

  constructor(keptMillis = KEPT_MILLIS) {
    this.#keptMillis = keptMillis
  }

  async page(engine: Pick<Engine, 'changes'>, id: string, request: PageRequest): Promise<ChangesPage> {
    const { selection, digest, from, limit } = request
    const key = JSON.stringify([id, selection, digest])
    const changeset =
      this.#kept.get(key)?.changeset ??
      (await (selection === null ? engine.changes(id) : engine.changes(id, selection)))
    if (digest !== '' && changeset.digest !== digest)
      throw new PuzzledError('changed-since-review', `Branch ${id} has changed while its changes were read`, {
        hint: 'Begin again with the first page.',
      })
    const changes = partOf(changeset.changes, from, Math.min(limit, MOST_CHANGES))
    const next = from + changes.length
    const over = next >= changeset.changes.length
    const whole = JSON.stringify([id, selection, changeset.digest])
    if (over) this.#forget(whole)
    else this.#keep(whole, changeset)
    return { changeset: { ...changeset, changes }, next: over ? null : next }
  }

  close(): void {
    for (const key of [...this.#kept.keys()]) this.#forget(key)
  }

  /** The one that was asked for last is forgotten last. */
  #keep(key: string, changeset: Changeset): void {
    this.#forget(key)
    const timer = setTimeout(() => this.#forget(key), this.#keptMillis).unref()
    this.#kept.set(key, { changeset, timer })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#forget(oldest)
  }

  #forget(key: string): void {
    clearTimeout(this.#kept.get(key)?.timer)
    this.#kept.delete(key)
  }
}

/** At least one where there is one: whoever reads on comes to the end. */
function partOf(changes: readonly Change[], from: number, limit: number): Change[] {
  const part: Change[] = []
  let bytes = 0
  for (let at = from; at < changes.length && part.length < Math.max(1, limit); at++) {
    const change = changes[at]
    if (change === undefined) break
    bytes += sizeOf(change)
    if (part.length > 0 && bytes > MOST_BYTES) break
    part.push(change)
  }
  return part
}

/** What agents can make as long as they like; everything else is small. */
function sizeOf({ path, old, new: now, findings }: Change): number {
  const states = [old, now].map(
    (state) =>
      (state?.link?.length ?? 0) +
      (state?.xattrs ?? []).reduce((sum, { name, value }) => sum + name.length + value.length, 0),
  )
  return 512 + path.length + (states[0] ?? 0) + (states[1] ?? 0) + 256 * findings.length
}

/** One answer with all of them would hold up everybody else, or not fit into a message. */
export function requireOnePage(changeset: Changeset): Changeset {
  const { length } = changeset.changes
  if (length > 10 * MOST_CHANGES)
    throw new PuzzledError('too-large', `${length} changes are too many for one answer`, {
      hint: 'ChangesPage tells them in parts.',
    })
  return changeset
}
