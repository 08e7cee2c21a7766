import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { BranchRecord, Requester } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import { readClock } from '../kernel/clock.ts'
import { close } from '../kernel/paths.ts'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { newCommitId } from '../lib/ids.ts'
import { InlineLink } from '../lib/inline-link.ts'
import type { TellProgress } from '../lib/progress.ts'
import { type Answerer, isWorkerGone, type Link, WorkerLink } from '../lib/worker-link.ts'
import { digestOf } from './changeset.ts'
import { earliestAfter, timeOfCommit } from './clock-step.ts'
import type { Landed } from './commit.ts'
import type { JobHooks } from './commit-context.ts'
import type { CollectCall, LandCall, RecoverCall, RevertCall, TrashCall } from './commit-verbs.ts'
import { diffJob } from './diff.ts'
import { HeldDescriptors } from './held-descriptors.ts'
import { packChanges } from './journal/changes.ts'
import { commitOf } from './journal/writer.ts'
import type { CommitFate } from './recovery-plan.ts'
import type { Collected, Retention } from './retention.ts'
import { filesystemMark } from './same-filesystem.ts'

/** From one name in the trash to the next it is a moment, but on a disk that hangs. */
const PATIENCE_MS = 5_000

export interface CommitStore {
  /** The store's directory. */
  readonly root: string
  directory(id: string): string
}

/**
 * Lands changesets from a worker thread: the event loop waits for no disk. Commits run one after the other, so the
 * first one wins, and the next one finds the base changed.
 */
export class WorkerCommitter {
  readonly #store: CommitStore
  readonly #now: () => Date
  readonly #commits: Link
  /** Removal of gigabytes must not make a commit wait. */
  readonly #housekeeping: Link
  readonly #ending = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

  constructor(store: CommitStore, now: () => Date, links: () => CommitLinks = ownThreads) {
    this.#store = store
    this.#now = now
    const { commits, housekeeping } = links()
    this.#commits = commits
    this.#housekeeping = housekeeping
  }

  /** Lands exactly this changeset or nothing. */
  async commit(record: BranchRecord, changeset: Changeset, hooks: JobHooks): Promise<Landed> {
    if (digestOf(changeset) !== changeset.digest)
      throw new PuzzledError('changed-since-review', 'The changeset does not have the digest that it names')
    const diff = diffJob(record, this.#store.directory(record.id))
    const call: LandCall = {
      store: this.#store.root,
      diff,
      filesDigest: digestOf({ ...changeset, requests: [] }),
      job: {
        commit: newCommitId(),
        branch: record.id,
        digest: changeset.digest,
        part: record.digest !== null && record.digest !== changeset.digest,
        reverts: null,
        requester: record.requester,
        at: timeOfCommit(this.#now(), record.commit?.at),
        forkedAtNs: forkOf(record),
        allowSetuid: record.profile.resolved.gate.allowSetuid,
        bases: record.bases.map(({ path, dev, filesystemId }) => ({
          path,
          ...filesystemMark(dev, filesystemId),
        })),
      },
      packed: [...packChanges(changeset.changes)],
      hasLanded: record.commit !== null,
    }
    return (await this.#call('land', call, call.job.commit, answererOf(hooks), hooks.tell)) as Landed
  }

  /** Lands the reverse of a commit with the same checks. Throws `conflict` when the base has gone on since. */
  async revert(commit: string, requester: Requester, tell?: TellProgress): Promise<Landed> {
    const call: RevertCall = {
      store: this.#store.root,
      commit,
      as: newCommitId(),
      requester,
      at: this.#now().toISOString(),
    }
    return (await this.#call('revert', call, call.as, async () => undefined, tell)) as Landed
  }

  async commits(): Promise<readonly string[]> {
    const names = await readdir(join(this.#store.root, 'journal'))
    return names.flatMap((name) => commitOf(name) ?? [])
  }

  /** Only the journal of a commit whose thread has died knows what became of it: that is never taken for a refusal. */
  async #call(
    verb: string,
    call: LandCall | RevertCall,
    commit: string,
    answer: Answerer,
    tell: TellProgress | undefined,
  ): Promise<unknown> {
    try {
      return await this.#commits.call(verb, call, answer, tell)
    } catch (cause) {
      if (!isWorkerGone(cause)) throw cause
      throw new PuzzledError('stuck', `Commit ${commit} was interrupted; its journal decides about it`, {
        cause,
        hint: 'Restart the daemon, or run any command without one: recovery finishes it or takes it back.',
        data: { commit },
      })
    }
  }

  /** Follows every journal to its end. `retry` names stuck commits that a person wants to be tried again. */
  async recover(retry: readonly string[] = []): Promise<CommitFate[]> {
    // Nothing was ever committed here: no code of a commit needs to be loaded to know what became of it.
    if ((await readdir(join(this.#store.root, 'journal'))).length === 0) return []
    const call: RecoverCall = { store: this.#store.root, at: this.#now().toISOString(), retry }
    return (await this.#commits.call('recover', call)) as CommitFate[]
  }

  /** Removes what can be reverted no longer. */
  async collect(retention: Retention, tell?: TellProgress): Promise<Collected> {
    const call: CollectCall = { store: this.#store.root, retention, now: this.#now().getTime() }
    return (await this.#commits.call('collect', call, undefined, tell)) as Collected
  }

  /** Removes what was discarded. */
  async emptyTrash(): Promise<{ branches: number; bytes: number }> {
    const call: TrashCall = { path: join(this.#store.root, 'trash'), ending: this.#ending }
    return (await this.#housekeeping.call('emptyTrash', call)) as { branches: number; bytes: number }
  }

  /** A thread that is ended in the middle of a removal leaves open what it was reading: it is told, and ends by itself. */
  async close(): Promise<void> {
    Atomics.store(this.#ending, 0, 1)
    await Promise.all([this.#commits.close(), this.#housekeeping.close(PATIENCE_MS)])
  }
}

export interface CommitLinks {
  commits: Link
  housekeeping: Link
}

/** For a daemon: the event loop waits for no disk. */
export const ownThreads = (): CommitLinks => ({ commits: commitThread(), housekeeping: commitThread() })

function commitThread(): WorkerLink {
  const held = new HeldDescriptors()
  return new WorkerLink(workerPath('commit'), {
    data: { held: held.shared },
    // What a commit keeps is outside the heap; what it has in it is soon done with.
    youngMb: 8,
    // Locks among them: nobody could commit into those bases until this process ends.
    onEnd: () => held.closeAll(close),
  })
}

/** For a process that serves nobody while it commits. */
export function sameThread(): CommitLinks {
  const link = new InlineLink(async () => {
    const [{ commitVerbs }, { KernelDisk }] = await Promise.all([
      import('./commit-verbs.ts'),
      import('./kernel-disk.ts'),
    ])
    return commitVerbs(new KernelDisk())
  })
  return { commits: link, housekeeping: link }
}

const NS_PER_MS = 1_000_000n

/** What changes in the base from this moment on was not seen by the agent; by the clock as it goes now. */
export const forkOf = ({ createdAt, clock }: Pick<BranchRecord, 'createdAt' | 'clock'>): bigint =>
  earliestAfter(BigInt(Date.parse(createdAt)) * NS_PER_MS, clock, readClock())

const answererOf =
  (hooks: JobHooks): Answerer =>
  (what, commit) =>
    what === 'beforeIntent' ? hooks.beforeIntent(commit) : hooks.afterIntent(commit)
