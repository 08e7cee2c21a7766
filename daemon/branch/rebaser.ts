import type { BranchRecord } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { RebaseChoices } from '../contract/engine.ts'
import { workerPath } from '../lib/assets.ts'
import { WorkerLink } from '../lib/worker-link.ts'
import { type CommitStore, forkOf } from './committer.ts'
import { diffJob } from './diff.ts'
import { packChanges } from './journal/changes.ts'
import { layerMounts } from './overlay.ts'
import type { CollisionsCall, ReapplyCall } from './rebase.worker.ts'
import { type Collision, planRebase, type RebasePlan } from './rebase-plan.ts'

const NS_PER_MS = 1_000_000n

type Reapplied = Pick<RebasePlan, 'changes' | 'merged'>

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
