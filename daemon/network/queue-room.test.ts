import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DEFAULT_QUEUE_LIMITS, RequestQueue } from './queue.ts'
import { type QueueOwner, QueueRoom } from './queue-room.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'puzzled-room-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const owner = (id: string, uid = 1_000): QueueOwner => ({ id, uid, user: `user ${uid}` })
const HEAD = {
  method: 'POST',
  scheme: 'http',
  host: 'a.example.com',
  port: 80,
  target: '/',
  headers: [],
} as const

/** What a closed queue left on the disk. */
function left({ id }: QueueOwner, bytes: number): void {
  mkdirSync(join(root, id, 'queue'), { recursive: true })
  writeFileSync(join(root, id, 'queue', 'body-x'), Buffer.alloc(bytes))
}

function room(branches: readonly QueueOwner[], perUser: number, all = 1e9): QueueRoom {
  return new QueueRoom(
    (id) => join(root, id),
    async () => branches,
    () => ({ perUser, all }),
  )
}

it('counts what the closed queues of a user left, and no other user', async () => {
  const branches = [owner('a'), owner('b'), owner('c', 2_000)]
  for (const one of branches) left(one, 400)
  const share = room([...branches, owner('gone')], 1_000).share(owner('new'))
  await share.ready()
  expect(share.ready()).toBeUndefined()
  share.take(200)
  expect(() => share.take(1)).toThrow(/queues of user 1000 hold at most 1000 bytes/)
  share.give(200)
  share.take(150)
})

it('counts open queues of one user together, and all users against the store', async () => {
  const shared = room([], 1_000, 1_500)
  const [one, two, other] = [
    shared.share(owner('a')),
    shared.share(owner('b')),
    shared.share(owner('c', 2_000)),
  ]
  await one.ready()
  one.take(600)
  expect(() => two.take(401)).toThrow(/of user 1000/)
  two.take(400)
  expect(() => other.take(501)).toThrow(/All queues of this machine hold at most 1500/)
  other.take(500)
})

it('finds on the disk what a queue held when it was closed, and nothing of a branch that is gone', async () => {
  const shared = room([owner('a')], 1_000)
  const first = shared.share(owner('a'))
  first.take(900)
  left(owner('a'), 900)
  first.close()
  const second = shared.share(owner('b'))
  await second.ready()
  expect(() => second.take(101)).toThrow(/queue|hold/)
  rmSync(join(root, 'a'), { recursive: true })
  shared.share(owner('c')).close()
  await second.ready()
  second.take(1_000)
})

it('a queue takes its bodies and records from it, and gives back what it refuses or drops', async () => {
  const shared = room([], 10_000)
  const queue = await RequestQueue.open(
    join(root, 'q', 'queue'),
    DEFAULT_QUEUE_LIMITS,
    shared.share(owner('q')),
  )
  const add = async (bytes: number): Promise<string> =>
    (await queue.add({ ...HEAD, rule: 'w' }, queue.take(Buffer.alloc(bytes)))).id
  const first = await add(2_000)
  await expect(add(8_000)).rejects.toMatchObject({ code: 'queue-full' })
  await queue.drop(first)
  await add(2_000)
  await queue.close()
  // Opened again, it starts with what it holds.
  const again = shared.share(owner('q'))
  const reopened = await RequestQueue.open(join(root, 'q', 'queue'), DEFAULT_QUEUE_LIMITS, again)
  expect(() => again.take(6_000)).toThrow(/hold at most 10000/)
  await reopened.close()
})
