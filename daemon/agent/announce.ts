import type { BranchStore, Clock, Events } from './ports.ts'

/** The same store, with an event for every move. Record first, then the event: nobody hears of what is not durable. */
export function announcing(store: BranchStore, events: Events, clock: Clock): BranchStore {
  return {
    create: (record) => store.create(record),
    read: (id) => store.read(id),
    list: () => store.list(),
    resolve: (text) => store.resolve(text),
    update: (id, change) => store.update(id, change),
    directory: (id) => store.directory(id),
    move: async (id, to, reason, change) => {
      const { state: from } = await store.read(id)
      const moved = await store.move(id, to, reason, change)
      events.publish({ kind: 'state', branch: id, time: clock.now().toISOString(), from, to, reason })
      return moved
    },
    discard: async (id) => {
      await store.discard(id)
      const time = clock.now().toISOString()
      events.publish({
        kind: 'state',
        branch: id,
        time,
        from: 'discarding',
        to: 'discarded',
        reason: 'in the trash',
      })
    },
  }
}
