import { EventEmitter, once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { branchRecord } from '../../test/fakes/branch-record.ts'
import { ModelDisk } from '../../test/fakes/model-disk.ts'
import { ModelFiles } from '../../test/fakes/model-files.ts'
import { BRANCH_STATES, type BranchState, isTerminal } from '../contract/states.ts'
import type { DurableFiles } from '../lib/durable.ts'
import { afterRestart } from './lifecycle.ts'
import type { CommitFate } from './recovery-plan.ts'
import { FileBranchStore } from './store.ts'
import { recoverBranches } from './store-recovery.ts'

const A = '23456789bc'
const B = '23456789bd'
const NOW = new Date('2026-01-02T00:00:00.000Z')

async function makeStore(): Promise<{ store: FileBranchStore; files: ModelFiles; disk: ModelDisk }> {
  const disk = new ModelDisk(['store'])
  const files = new ModelFiles(disk)
  for (const folder of ['branches', 'trash']) await files.makeDirectory(`/store/${folder}`)
  return { store: new FileBranchStore('/store', files, () => NOW), files, disk }
}

const delegate = (files: DurableFiles): DurableFiles => ({
  read: (path) => files.read(path),
  writeRecord: (path, bytes) => files.writeRecord(path, bytes),
  append: (path, bytes) => files.append(path, bytes),
  makeDirectory: (path) => files.makeDirectory(path),
  move: (from, to) => files.move(from, to),
  list: (path) => files.list(path),
})

describe('the store', () => {
  it('keeps what it was given and when it changed', async () => {
    const { store } = await makeStore()
    await store.create(branchRecord(A, { name: 'one' }))
    const ready = await store.move(A, 'ready', 'layers are made', { layers: 1 })
    expect(ready).toMatchObject({ state: 'ready', reason: 'layers are made', updatedAt: NOW.toISOString() })
    expect(await store.read(A)).toEqual(ready)
    expect((await store.update(A, { digest: 'd', state: 'committed' })).state).toBe('ready')
  })

  it.each(['before', 'while'])('remembers nothing that was read %s it was written over', async (when) => {
    const { files } = await makeStore()
    const held = { read: Promise.resolve(), write: Promise.resolve() }
    const slow: DurableFiles = {
      ...delegate(files),
      read: async (path) => {
        const until = held.read
        const bytes = await files.read(path)
        await until
        return bytes
      },
      writeRecord: async (path, bytes) => {
        await held.write
        await files.writeRecord(path, bytes)
      },
    }
    const store = new FileBranchStore('/store', slow, () => NOW)
    await store.create(branchRecord(A))
    store.remember(1)
    const gate = new EventEmitter()
    const opened = once(gate, 'open').then(() => undefined)
    if (when === 'before') {
      // The reader has its bytes, and is given them when the record is another one already.
      held.read = opened
      const reading = store.read(A)
      held.read = Promise.resolve()
      await store.move(A, 'ready', 'made')
      gate.emit('open')
      expect((await reading).state).toBe('preparing')
    } else {
      held.write = opened
      const writing = store.move(A, 'ready', 'made')
      await new Promise((resolve) => setImmediate(resolve))
      expect((await store.read(A)).state).toBe('preparing')
      gate.emit('open')
      await writing
    }
    expect((await store.read(A)).state).toBe('ready')
    await store.move(A, 'running', 'started')
  })

  it('reads what was used lately once, and no more than it was told to keep', async () => {
    const { files } = await makeStore()
    const read: string[] = []
    const counting: DurableFiles = {
      ...delegate(files),
      read: (path) => {
        read.push(path)
        return files.read(path)
      },
    }
    const store = new FileBranchStore('/store', counting, () => NOW)
    for (const id of [A, B]) await store.create(branchRecord(id))
    store.remember(1)
    for (const id of [A, A, B, B, A]) await store.read(id)
    expect(await store.resolve(A)).toBe(A)
    expect(read.map((path) => path.split('/').at(-2))).toEqual([A, B, A])
    await store.list()
    await store.read(A)
    expect(read.map((path) => path.split('/').at(-2))).toEqual([A, B, A, B])
    store.remember(0)
    await store.read(A)
    await store.read(A)
    expect(read).toHaveLength(6)
  })

  it('finds a whole id without its record, and none that is not there', async () => {
    const { store, files } = await makeStore()
    await files.makeDirectory(`/store/branches/${A}`)
    expect(await store.resolve(A)).toBe(A)
    await expect(store.read(A)).rejects.toMatchObject({ code: 'record-damaged' })
    await expect(store.resolve(B)).rejects.toMatchObject({ code: 'branch-unknown' })
  })

  it('refuses a move that the table does not have, and changes nothing', async () => {
    const { store } = await makeStore()
    await store.create(branchRecord(A))
    await expect(store.move(A, 'committed', 'x')).rejects.toMatchObject({ code: 'wrong-state' })
    expect((await store.read(A)).state).toBe('preparing')
  })

  it('finds by id, prefix and name, and says what is ambiguous', async () => {
    const { store } = await makeStore()
    await store.create(branchRecord(A, { name: 'mine' }))
    await store.create(branchRecord(B, { name: 'yours' }))
    expect(await store.resolve(A)).toBe(A)
    expect(await store.resolve('mine')).toBe(A)
    expect(await store.resolve('23456789bd')).toBe(B)
    await expect(store.resolve('2345')).rejects.toMatchObject({ code: 'branch-ambiguous' })
    for (const text of ['nothing', '', '../x'])
      await expect(store.resolve(text)).rejects.toMatchObject({ code: 'branch-unknown' })
    expect(() => store.directory('../../etc')).toThrow('no branch')
  })

  it('serialises changes of one branch', async () => {
    const { store } = await makeStore()
    await store.create(branchRecord(A))
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const { extensions } = await store.read(A)
        expect(extensions).toBeDefined()
        await store.update(A, { digest: String(n) })
      }),
    )
    expect((await store.read(A)).digest).toMatch(/^\d+$/)
  })

  it.each([
    ['half a record', '{"version":1,', 'record-damaged'],
    ['a record of another branch', JSON.stringify(branchRecord(B)), 'record-damaged'],
    ['a state that does not exist', JSON.stringify({ ...branchRecord(A), state: 'odd' }), 'record-damaged'],
    [
      'a record without its bases',
      JSON.stringify({ ...branchRecord(A), bases: undefined }),
      'record-damaged',
    ],
    ['a newer record', JSON.stringify({ ...branchRecord(A), version: 2 }), 'state-newer'],
  ])('keeps and shows %s', async (_, text, code) => {
    const { store, files } = await makeStore()
    await store.create(branchRecord(A))
    await store.create(branchRecord(B))
    await files.writeRecord(`/store/branches/${A}/branch.json`, Buffer.from(text))
    await expect(store.read(A)).rejects.toMatchObject({ code })
    expect((await store.list()).map(({ id }) => id)).toEqual([B])
    expect((await store.damaged()).map(({ id }) => id)).toEqual([A])
    expect(await store.resolve(A)).toBe(A)
    await recoverBranches(store, [], NOW)
    expect(String(await files.read(`/store/branches/${A}/branch.json`))).toBe(text)
  })

  it('moves a discarded branch out of sight at once', async () => {
    const { store, files } = await makeStore()
    await store.create(branchRecord(A))
    await expect(store.discard(A)).rejects.toMatchObject({ code: 'wrong-state' })
    await store.move(A, 'discarding', 'x')
    await store.discard(A)
    await expect(store.read(A)).rejects.toMatchObject({ code: 'branch-unknown' })
    expect(await files.list('/store/trash')).toEqual([A])
  })
})

const fate = (what: CommitFate['fate'], change: Partial<CommitFate> = {}): CommitFate => ({
  commit: 'c23456789bcd',
  branch: A,
  fate: what,
  digest: 'd',
  at: '2026-01-01T12:00:00.000Z',
  part: false,
  reverts: null,
  reason: what,
  fresh: true,
  ...change,
})

async function restartIn(
  state: BranchState,
  fates: CommitFate[] = [],
  commit: string | null = null,
): Promise<string> {
  const { store } = await makeStore()
  await store.create(
    branchRecord(A, { state, commit: commit === null ? null : { id: 'c0', at: commit, digest: 'd' } }),
  )
  await recoverBranches(store, fates, NOW)
  const [record] = await store.list()
  return record?.state ?? 'gone'
}

describe('a restart', () => {
  it.each(BRANCH_STATES.filter((state) => !isTerminal(state) && !/stag|commit/.test(state)))(
    'in %s ends where the lifecycle says',
    async (state) => {
      const expected = afterRestart(state)
      expect(await restartIn(state)).toBe(expected === 'discarding' ? 'gone' : expected)
    },
  )

  it('marks an agent that was running as interrupted', async () => {
    const { store } = await makeStore()
    await store.create(branchRecord(A, { state: 'running' }))
    await recoverBranches(store, [], NOW)
    expect((await store.read(A)).exit).toMatchObject({ cause: 'daemon-restart', code: null })
  })

  it.each([
    ['staging', [], 'stopped'],
    ['staging', [fate('committed')], 'committed'],
    ['staging', [fate('committed', { part: true })], 'stopped'],
    ['staging', [fate('undone')], 'stopped'],
    ['staging', [fate('stuck')], 'commit-stuck'],
    ['staging', [fate('stuck', { branch: null })], 'commit-stuck'],
    ['staging', [fate('committed', { reverts: 'c0' })], 'stopped'],
    ['committing', [fate('committed')], 'committed'],
    ['committing', [fate('undone')], 'stopped'],
    // The old tree was back and its journal removed; the power went before the branch was told.
    ['committing', [], 'stopped'],
    ['commit-stuck', [], 'stopped'],
    ['commit-stuck', [fate('stuck')], 'commit-stuck'],
    ['commit-stuck', [fate('stuck', { branch: null })], 'commit-stuck'],
    ['commit-stuck', [fate('committed')], 'committed'],
  ] as const)('in %s with the journal %j leads to %s', async (state, fates, expected) => {
    expect(await restartIn(state, [...fates])).toBe(expected)
  })

  it('says of a stuck commit what is wrong now, not what was wrong before', async () => {
    const { store } = await makeStore()
    await store.create(branchRecord(A, { state: 'commit-stuck', reason: 'EIO' }))
    await recoverBranches(store, [fate('stuck', { reason: 'its journal is damaged' })], NOW)
    expect(await store.read(A)).toMatchObject({ state: 'commit-stuck', reason: 'its journal is damaged' })
  })

  it('does not take an earlier part for the commit that was interrupted', async () => {
    expect(await restartIn('staging', [fate('committed')], '2026-01-01T12:00:00.500Z')).toBe('stopped')
  })

  it('finds the same states when the power goes at any step of it', async () => {
    for (let step = 1; step < 12; step++) {
      const { store, disk } = await makeStore()
      await store.create(branchRecord(A, { state: 'running' }))
      await store.create(branchRecord(B, { state: 'preparing' }))
      disk.settle()
      disk.steps = 0
      disk.beforeStep = (at) => {
        if (at === step) disk.cutPower()
      }
      await recoverBranches(store, [], NOW).catch(() => undefined)
      disk.beforeStep = undefined
      disk.restart((index) => (index % 2 === step % 2 ? 'kept' : 'lost'))
      await recoverBranches(store, [], NOW)
      expect((await store.list()).map(({ id, state }) => [id, state])).toEqual([[A, 'stopped']])
    }
  })
})
