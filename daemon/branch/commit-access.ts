import { encodePath } from '../contract/bytes.ts'
import type { Change } from '../contract/changeset.ts'
import { type DiskStat, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { BaseDir, BaseDirs } from './base-dirs.ts'
import type { CommitContext, CommitJob } from './commit-context.ts'
import type { CommitPlan } from './commit-plan.ts'
import { splitPath } from './journal/format.ts'
import { demandOf, type Need, stickyAllows } from './writable.ts'

/** Must-sentence 7: refuses the whole commit when the requester could not have made one of its changes. */
export function requireWritable(
  context: CommitContext,
  job: CommitJob,
  plan: CommitPlan,
  dirs: BaseDirs,
): void {
  const checker = new Checker(context, job, dirs)
  for (const { change, tree } of plan.operations) {
    if (change !== null) checker.check(change, null)
    for (const node of tree.slice(1)) checker.check(node.change, change)
  }
  for (const change of plan.folded) if (change.new === null) checker.check(change, null)
}

class Checker {
  readonly #context: CommitContext
  readonly #job: CommitJob
  readonly #dirs: BaseDirs
  /** Answers about directories: there are few of them, and each is asked for thousands of entries. */
  readonly #reached = new Map<string, string | null>()
  readonly #entries = new Map<string, string | null>()
  #parent: { at: BaseDir; stat: DiskStat | null } | undefined

  constructor(context: CommitContext, job: CommitJob, dirs: BaseDirs) {
    this.#context = context
    this.#job = job
    this.#dirs = dirs
  }

  /** `root` is the new directory that the change lies below, or null when its parent is in the base. */
  check(change: Change, root: Change | null): void {
    const { parent } = splitPath(change.path)
    const at = root === null ? this.#dirs.open(change.base, parent) : null
    const stat = at === null ? null : this.#statOf(at)
    const group = root === null ? inheritedGroup(stat) : (root.new?.gid ?? null)
    const demand = demandOf(change, this.#job.requester, root !== null, group)
    if (at === null || stat === null) {
      this.#refuseIf(change, this.#numbers(demand.all))
      return
    }
    const unreached = this.#reach(change.base, parent)
    if (unreached !== null) throw refused(change, `the requester cannot reach it (${unreached})`)
    const first = this.#all(change, demand.all, at.dir, stat)
    if (first === null) return
    const second = demand.or === null ? first : this.#all(change, demand.or, at.dir, stat)
    this.#refuseIf(change, second === null ? null : first)
  }

  /** Fresh for each directory of this check; changes come directory by directory. */
  #statOf(at: BaseDir): DiskStat | null {
    if (this.#parent?.at !== at) this.#parent = { at, stat: this.#context.disk.stat(at.dir, NO_NAME) }
    return this.#parent.stat
  }

  #refuseIf(change: Change, problem: string | null): void {
    if (problem !== null) throw refused(change, problem)
  }

  #numbers(needs: readonly Need[]): string | null {
    for (const need of needs) if (need.kind === 'never') return need.because
    return null
  }

  #all(change: Change, needs: readonly Need[], dir: number, parent: DiskStat): string | null {
    for (const need of needs) {
      const problem = this.#one(change, need, dir, parent)
      if (problem !== null) return problem
    }
    return null
  }

  #one(change: Change, need: Need, dir: number, parent: DiskStat): string | null {
    if (need.kind === 'never') return need.because
    const { name } = splitPath(change.path)
    if (need.kind === 'write') {
      const errno = this.#context.access.write(dir, name)
      return errno === null ? null : `the requester may not write to it (${errno})`
    }
    if (!stickyAllows(this.#job.requester, parent, need.old))
      return 'its directory is sticky and it belongs to somebody else'
    const key = `${change.base}:${parent.dev}:${parent.ino}`
    let errno = this.#entries.get(key)
    if (errno === undefined) {
      errno = this.#context.access.changeEntries(dir)
      this.#entries.set(key, errno)
    }
    return errno === null ? null : `the requester may not change entries of its directory (${errno})`
  }

  #reach(base: number, parent: Buffer): string | null {
    const key = `${base}:${parent.toString('latin1')}`
    let answer = this.#reached.get(key)
    if (answer === undefined) {
      answer = this.#context.access.reach(this.#job.bases[base]?.path ?? '', parent)
      this.#reached.set(key, answer)
    }
    return answer
  }
}

const inheritedGroup = (stat: DiskStat | null): number | null =>
  stat !== null && (stat.mode & 0o2000) !== 0 ? stat.gid : null

const refused = (change: Change, problem: string): PuzzledError =>
  new PuzzledError('not-writable', `Cannot commit "${encodePath(change.path).path}": ${problem}`, {
    hint: 'Nothing was changed. Drop the path, or let somebody commit who may write there.',
    data: { ...encodePath(change.path) },
  })
