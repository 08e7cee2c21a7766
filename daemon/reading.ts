import { BranchReader } from './agent/read.ts'
import { LayerDiffer } from './branch/diff.ts'
import { FileOutputLogs } from './branch/output-log.ts'
import { FileBranchStore } from './branch/store.ts'
import { findStoreDirectory } from './branch/store-directory.ts'
import type { EngineReader } from './contract/engine.ts'
import { readDenials } from './denial-files.ts'
import { CONFIG_PATH } from './lib/config.ts'
import { nodeFiles } from './lib/durable.ts'
import { readConfig } from './lib/read-config.ts'
import { readPending, readViews } from './network/queue-read.ts'

const now = (): Date => new Date()

/**
 * Looks into a store that another process uses. Nothing is locked, recovered or written; its owner may change a branch
 * while one is looked at, and then that look fails or is out of date, as every look at something that runs is.
 */
export async function openReader(stateDir: string | null): Promise<EngineReader> {
  const root = await findStoreDirectory(stateDir ?? (await readConfig(CONFIG_PATH)).state_dir, nodeFiles)
  const store = new FileBranchStore(root, nodeFiles, now)
  return new BranchReader(
    {
      store,
      differ: new LayerDiffer(store),
      outbox: {
        pending: ({ id }) => readPending(store.directory(id)),
        view: ({ id, profile }) => {
          const { credentials } = profile.resolved.network
          return readViews(
            store.directory(id),
            credentials.map(({ placeholder }) => placeholder),
          )
        },
      },
      outputs: new FileOutputLogs((id) => store.directory(id), now),
      denials: { list: (id) => readDenials(store.directory(id)) },
    },
    async () => undefined,
  )
}
