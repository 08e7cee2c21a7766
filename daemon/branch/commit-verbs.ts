import type { Requester } from '../contract/branch.ts'
import type { TellProgress } from '../lib/progress.ts'
import type { Ask, Verbs } from '../lib/worker-side.ts'
import { type Landed, land } from './commit.ts'
import type { CommitJob, JobHooks } from './commit-context.ts'
import { kernelContext } from './commit-environment.ts'
import { LayerSources } from './commit-sources.ts'
import type { DiffJob } from './diff-job.ts'
import { HoldingDisk, type KernelDisk } from './kernel-disk.ts'
import { ownLandings } from './own-landings.ts'
import { packedChanges } from './packed-change.ts'
import { recoverCommits } from './recover.ts'
import type { CommitFate } from './recovery-plan.ts'
import { type Collected, collectCommits, type Retention } from './retention.ts'
import { reverseOf } from './revert.ts'
import { requireApproved } from './still-approved.ts'
import { emptyTrash } from './trash.ts'

export interface LandCall {
  store: string
  job: Omit<CommitJob, 'changes'>
  /** The changes in canonical order, packed. */
  packed: readonly Uint8Array[]
  /** Where the layers are, to compare them once more. */
  diff: DiffJob
  /** Of the reviewed changes without the queued requests. */
  filesDigest: string
  /** A part of this branch has landed before. */
  hasLanded: boolean
}

export interface RevertCall {
  store: string
  commit: string
  as: string
  requester: Requester
  at: string
}

export interface RecoverCall {
  store: string
  at: string
  retry: readonly string[]
}

export interface CollectCall {
  store: string
  retention: Retention
  now: number
}

export interface TrashCall {
  path: string
  /** Shared; not 0 when somebody waits for the thread to end. */
  ending: Int32Array
}

const hooksOf = (ask: Ask): JobHooks => ({
  beforeIntent: (commit) => ask('beforeIntent', commit),
  afterIntent: (commit) => ask('afterIntent', commit),
})

/**
 * Everything of a commit that waits for a disk, by synchronous calls: on a thread of its own in a daemon, in the thread
 * itself where a command has nothing else to do; then no timer runs meanwhile, and how far it is must be told.
 */
export const commitVerbs = (disk: KernelDisk): Verbs => ({
  async land({ store, job, packed, diff, filesDigest, hasLanded }: LandCall, ask, tell): Promise<Landed> {
    const sources = new LayerSources(
      disk,
      diff.bases.map(({ uppers }) => uppers),
    )
    const changes = packed.flatMap((bytes) => [...packedChanges(bytes)])
    const recheck = (): void => requireApproved(diff, changes, filesDigest, job.part)
    try {
      const context = {
        ...kernelContext(store, job.requester, sources, disk),
        recheck,
        tell,
        ...(hasLanded ? { landings: ownLandings(disk, `${store}/journal`, job.branch) } : {}),
      }
      return await land(context, { ...job, changes }, hooksOf(ask))
    } finally {
      sources.close()
    }
  },

  async revert(call: RevertCall, ask, tell): Promise<Landed> {
    const { job, sources } = reverseOf(disk, `${call.store}/journal`, call)
    try {
      const context = { ...kernelContext(call.store, call.requester, sources, disk), tell }
      return await land(context, job, hooksOf(ask))
    } finally {
      sources.close()
    }
  },

  recover: ({ store, at, retry }: RecoverCall): CommitFate[] =>
    recoverCommits(disk, `${store}/journal`, at, new Set(retry)),

  collect: ({ store, retention, now }: CollectCall, _ask: Ask, tell: TellProgress): Collected =>
    collectCommits(disk, `${store}/journal`, retention, now, tell),

  emptyTrash: ({ path, ending }: TrashCall): { branches: number; bytes: number } =>
    emptyTrash(
      path,
      disk instanceof HoldingDisk ? disk.held : undefined,
      () => Atomics.load(ending, 0) !== 0,
    ),
})
