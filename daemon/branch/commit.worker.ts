import { workerData } from 'node:worker_threads'
import type { Requester } from '../contract/branch.ts'
import { type Ask, serveCalls } from '../lib/worker-side.ts'
import { type Landed, land } from './commit.ts'
import type { CommitJob, JobHooks } from './commit-context.ts'
import { kernelContext } from './commit-environment.ts'
import { LayerSources } from './commit-sources.ts'
import type { DiffJob } from './diff-job.ts'
import { HeldDescriptors } from './held-descriptors.ts'
import { unpackChanges } from './journal/changes.ts'
import { HoldingDisk } from './kernel-disk.ts'
import { ownLandings } from './own-landings.ts'
import { recoverCommits } from './recover.ts'
import type { CommitFate } from './recovery-plan.ts'
import { type Collected, collectCommits, type Retention } from './retention.ts'
import { reverseOf } from './revert.ts'
import { requireApproved } from './still-approved.ts'
import { emptyTrash } from './trash.ts'

/** Everything of a commit that waits for a disk happens on this thread, by synchronous calls. */
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

const hooksOf = (ask: Ask): JobHooks => ({
  beforeIntent: (commit) => ask('beforeIntent', commit),
  afterIntent: (commit) => ask('afterIntent', commit),
})

/** Whoever started this thread closes what it leaves open when it dies. */
const held = (workerData as { held?: SharedArrayBuffer } | null)?.held
const disk = new HoldingDisk(new HeldDescriptors(held))

serveCalls({
  async land({ store, job, packed, diff, filesDigest, hasLanded }: LandCall, ask): Promise<Landed> {
    const sources = new LayerSources(
      disk,
      diff.bases.map(({ uppers }) => uppers),
    )
    const changes = packed.flatMap(unpackChanges)
    const recheck = (): void => requireApproved(diff, changes, filesDigest, job.part)
    try {
      const context = {
        ...kernelContext(store, job.requester, sources, disk),
        recheck,
        ...(hasLanded ? { landings: ownLandings(disk, `${store}/journal`, job.branch) } : {}),
      }
      return await land(context, { ...job, changes }, hooksOf(ask))
    } finally {
      sources.close()
    }
  },

  async revert(call: RevertCall, ask): Promise<Landed> {
    const { job, sources } = reverseOf(disk, `${call.store}/journal`, call)
    try {
      return await land(kernelContext(call.store, call.requester, sources, disk), job, hooksOf(ask))
    } finally {
      sources.close()
    }
  },

  recover: ({ store, at, retry }: RecoverCall): CommitFate[] =>
    recoverCommits(disk, `${store}/journal`, at, new Set(retry)),

  collect: ({ store, retention, now }: CollectCall): Collected =>
    collectCommits(disk, `${store}/journal`, retention, now),

  emptyTrash: (path: string): { branches: number; bytes: number } => emptyTrash(path),
})
