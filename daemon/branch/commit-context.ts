import type { Requester } from '../contract/branch.ts'
import type { Change, NodeState } from '../contract/changeset.ts'
import type { Dir, Disk } from '../lib/disk.ts'
import type { TellProgress } from '../lib/progress.ts'
import type { BaseDir } from './base-dirs.ts'
import type { FilesystemMark } from './same-filesystem.ts'

/** What lands, decided and approved. Plain data: it crosses to the worker. */
export interface CommitJob {
  commit: string
  branch: string
  digest: string
  /** The branch keeps changes that were not selected. */
  part: boolean
  reverts: string | null
  requester: Requester
  at: string
  /** Changes of the base after this moment collide; null for a revert, which compares states instead. */
  forkedAtNs: bigint | null
  allowSetuid: boolean
  bases: readonly JobBase[]
  changes: readonly Change[]
}

export interface JobBase extends FilesystemMark {
  path: string
}

/** A readable directory entry that holds the new content of a change. `release` closes what was opened for it. */
export interface SourceFile {
  dir: Dir
  name: Uint8Array
  release(): void
}

export interface Sources {
  /** Null when the content is not there (any more). */
  find(change: Change, state: NodeState): SourceFile | null
  close(): void
}

/** Asks the kernel as the requester. Each answer is null, or the errno's name that the requester would have met. */
export interface Access {
  /** Reach a directory of a base, beneath it and from the root. */
  reach(base: string, path: Uint8Array): string | null
  /** Create, replace and remove entries of a directory. */
  changeEntries(dir: Dir): string | null
  /** Write to the node itself. */
  write(dir: Dir, name: Uint8Array): string | null
}

/** Where the private directory for an open directory is, whose absolute path is given. See docs/decisions/staging-place.md. */
export type FindArea = (at: BaseDir, path: Buffer) => string

export interface CommitContext {
  disk: Disk
  /** `journal/` of the store, absolute. */
  journal: string
  findArea: FindArea
  /** Waits for other stores' commits into this base; answers what gives the lock back. */
  lockBase: (dir: Dir, path: string) => () => void
  access: Access
  sources: Sources
  /** What earlier parts of the branch landed, and when: see `ownLandings`. */
  landings?: ReadonlyMap<string, bigint>
  /** What others removed since the fork: see `removedSince`. */
  removed?: ReadonlyMap<string, string>
  /** Compares the layers with what was approved, once nothing can write to them any more. Before INTENT, beside a sync. */
  recheck?: () => void
  /** Hears of every entry that is staged, which is most of the work. */
  tell?: TellProgress
}

export interface JobHooks {
  beforeIntent(commit: string): Promise<void>
  afterIntent(commit: string): Promise<void>
  /** Hears how far it is. */
  tell?: TellProgress
}
