import type { FileBranchStore } from './branch/store.ts'
import type { PuzzledEvent } from './contract/events.ts'
import type { Config } from './lib/config.ts'
import type { NetworkCounters } from './network/branch-queue.ts'
import { QueueRoom } from './network/queue-room.ts'
import { NetworkParts } from './network-parts.ts'

/** The networks of a store. What their queues take of the disk is limited together, by what the configuration says now. */
export function networks(
  files: FileBranchStore,
  publish: (event: PuzzledEvent) => void,
  counters: NetworkCounters,
  live: Pick<Config, 'queues'>,
): NetworkParts {
  const directory = (id: string): string => files.directory(id)
  const room = new QueueRoom(
    directory,
    async () => (await files.list()).map(({ id, requester: { uid, name } }) => ({ id, uid, user: name })),
    () => ({ perUser: live.queues.per_user, all: live.queues.all }),
  )
  return new NetworkParts(directory, publish, counters, room)
}
