import type { BranchRecord } from '../contract/branch.ts'
import { encodePath } from '../contract/bytes.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import type { FilePart, RebaseChoices } from '../contract/engine.ts'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { WorkerLink } from '../lib/worker-link.ts'
import { type CommitStore, forkOf } from './committer.ts'
import { diffJob } from './diff.ts'
import { packChanges } from './journal/changes.ts'
import { layerMounts } from './overlay.ts'
import type { CollisionsCall, CutCall, ReapplyCall } from './rebase.worker.ts'
import type { CutFile } from './rebase-cut.ts'
import { type Collision, planRebase, type RebasePlan } from './rebase-plan.ts'

const NS_PER_MS = 1_000_000n

type Reapplied = Pick<RebasePlan, 'changes'> & { merged: readonly CutFile[] }

/** Does the changes of one branch again in another one over the same bases, as they are now. */
export class WorkerRebaser {
  readonly #store: CommitStore
  readonly #worker = new WorkerLink(workerPath('rebase'))

  constructor(store: CommitStore) {
    this.#store = store
  }

  /** What can be done again, and what collides with the base and was not decided by the choices. */
  async plan(record: BranchRecord, changeset: Changeset, choices: RebaseChoices): Promise<RebasePlan> {
    const call: CollisionsCall = {
      store: this.#store.root,
      branch: record.id,
      hasLanded: record.commit !== null,
      bases: record.bases.map(({ path }) => path),
      packed: [...packChanges(changeset.changes)],
      forkedAtNs: forkOf(record),
      uppers: this.#uppersOf(record),
      requester: record.requester,
      agentEndedNs: record.exit === null ? null : BigInt(Date.parse(record.exit.endedAt)) * NS_PER_MS,
    }
    const collisions = (await this.#worker.call('collisions', call)) as Collision[]
    return planRebase(changeset, collisions, choices)
  }

  async cut(
    record: BranchRecord,
    parts: readonly { change: Change; part: FilePart }[],
  ): Promise<readonly CutFile[]> {
    const call: CutCall = {
      bases: record.bases.map(({ path }) => path),
      uppers: this.#uppersOf(record),
      packed: [...packChanges(parts.map(({ change }) => change))],
      parts: parts.map(({ part: { hunks, of } }) => ({ hunks, of })),
    }
    const cut = (await this.#worker.call('cut', call)) as (CutFile | string)[]
    return cut.map((file, index) => {
      if (typeof file !== 'string') return file
      const { path } = encodePath(parts[index]?.change.path ?? new Uint8Array())
      throw new PuzzledError('changed-since-review', `"${path}" cannot be cut: ${file}`, {
        hint: `Look again: puzzlectl review ${record.id}`,
      })
    })
  }

  /** Writes the changes into the writable layer of `to`, with content from the layers of `from`. Durable. */
  async reapply(from: BranchRecord, to: BranchRecord, { changes, merged }: Reapplied): Promise<void> {
    const call: ReapplyCall = {
      mounts: layerMounts(to, this.#store.directory(to.id)),
      uppers: this.#uppersOf(from),
      packed: [...packChanges(changes)],
      merged: merged.map(({ change, bytes }) => ({ index: changes.indexOf(change), bytes })),
    }
    await this.#worker.call('reapply', call)
  }

  #uppersOf(record: BranchRecord): string[][] {
    return diffJob(record, this.#store.directory(record.id)).bases.map(({ uppers }) => [...uppers])
  }

  close(): Promise<void> {
    return this.#worker.close()
  }
}
