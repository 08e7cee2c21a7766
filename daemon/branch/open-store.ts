import { nodeFiles } from '../lib/durable.ts'
import { WorkerCommitter } from './committer.ts'
import { DEFAULT_RETENTION, type Retention } from './retention.ts'
import { FileBranchStore } from './store.ts'
import { openStoreDirectory } from './store-directory.ts'
import { type RecoveryReport, recoverBranches, requireStuck } from './store-recovery.ts'

/** A store that is ours until `close`: its branches, and the thread that commits them. */
export interface OpenStore {
  readonly root: string
  readonly branches: FileBranchStore
  readonly committer: WorkerCommitter
  /** Once, before anything else: follows the journals, then brings every branch to a state that is true. */
  recover(): Promise<RecoveryReport>
  /** A person's word that a stuck commit may be tried again. */
  retry(id: string): Promise<RecoveryReport>
  /** Applies retention and empties the trash. */
  collect(retention?: Retention): Promise<{ branches: number; commits: number; bytes: number }>
  close(): Promise<void>
}

/** Throws `state-locked`, `state-newer`, `state-unsuitable`, `state-unreadable`. */
export async function openStore(path: string, now: () => Date): Promise<OpenStore> {
  const directory = await openStoreDirectory(path, nodeFiles)
  const root = directory.path
  const trash = new BackgroundTrash()
  const branches = new FileBranchStore(root, nodeFiles, now, () => trash.empty(committer))
  const committer = new WorkerCommitter({ root, directory: (id) => branches.directory(id) }, now)
  return {
    root,
    branches,
    committer,
    recover: async () => recoverBranches(branches, await committer.recover(), now()),
    async retry(id) {
      const record = await branches.read(id)
      requireStuck(record)
      const stuck = (await committer.recover()).filter(
        ({ branch, fate }) => branch === id && fate === 'stuck',
      )
      return recoverBranches(branches, await committer.recover(stuck.map(({ commit }) => commit)), now())
    },
    async collect(retention = DEFAULT_RETENTION) {
      const kept = await committer.collect(retention)
      const gone = await committer.emptyTrash()
      return { branches: gone.branches, commits: kept.commits.length, bytes: kept.bytes + gone.bytes }
    },
    async close() {
      await committer.close()
      directory.close()
    },
  }
}

/**
 * Removal that nobody waits for. What it cannot remove stays in the trash, where the next start and `gc` try again and
 * report it.
 */
class BackgroundTrash {
  #again = false
  #running = false

  empty(committer: WorkerCommitter): void {
    this.#again = true
    if (this.#running) return
    this.#running = true
    this.#run(committer).then(
      () => this.#ended(),
      () => this.#ended(),
    )
  }

  async #run(committer: WorkerCommitter): Promise<void> {
    while (this.#again) {
      this.#again = false
      await committer.emptyTrash()
    }
  }

  #ended(): void {
    this.#running = false
  }
}
