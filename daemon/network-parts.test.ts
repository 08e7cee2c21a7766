import { appendFileSync, mkdtempSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { branchRecord } from '../test/fakes/branch-record.ts'
import { RequestQueue } from './network/queue.ts'
import type { RequestState } from './network/queue-record.ts'
import { NetworkParts } from './network-parts.ts'

const ID = '23456789bc'
const REQUEST = {
  method: 'POST',
  scheme: 'https',
  host: 'api.test',
  port: 443,
  target: '/',
  headers: [],
  rule: 'r',
} as const

class CountingParts extends NetworkParts {
  replays = 0
  override async replay(): Promise<{ sent: number; problem: string | null }> {
    this.replays++
    return { sent: 1, problem: null }
  }
}

/** A branch whose queue holds requests that went these ways. */
async function resumeAfter(...ways: (readonly RequestState[])[]): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'network-parts-'))
  try {
    const queue = await RequestQueue.open(join(directory, 'queue'))
    for (const way of ways) {
      const { id } = await queue.add(REQUEST, await queue.spool(Readable.from([])))
      for (const state of way) await queue.move(id, state)
    }
    await queue.close()
    const parts = new CountingParts(
      () => directory,
      () => undefined,
    )
    await parts.resume(branchRecord(ID, { state: 'committed' }))
    return parts.replays
  } finally {
    rmSync(directory, { recursive: true })
  }
}

it('a request that is skipped lets the others out only where a commit landed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'network-parts-'))
  try {
    const queue = await RequestQueue.open(join(directory, 'queue'))
    const ids: string[] = []
    for (let n = 0; n < 2; n++) ids.push((await queue.add(REQUEST, await queue.spool(Readable.from([])))).id)
    // A commit approved them and was undone.
    await queue.approve(queue.summaries())
    await queue.close()
    const parts = new NetworkParts(
      () => directory,
      () => undefined,
    )
    await parts.act(branchRecord(ID, { state: 'stopped' }), ids[0] ?? '', 'skip', 'not wanted')
    const after = await RequestQueue.open(join(directory, 'queue'))
    expect(after.list().map(({ state }) => state)).toEqual(['skipped', 'approved'])
    await after.close()
  } finally {
    rmSync(directory, { recursive: true })
  }
})

it('an interrupted replay goes on where nobody has to decide first', async () => {
  const sent = ['approved', 'sending', 'sent'] as const
  expect(await resumeAfter(['approved'])).toBe(1)
  expect(await resumeAfter(sent, ['approved'], ['approved'])).toBe(1)
  expect(await resumeAfter()).toBe(0)
  expect(await resumeAfter([], ['approved'])).toBe(0)
  expect(await resumeAfter(sent, sent)).toBe(0)
  expect(await resumeAfter(['approved', 'failed'], ['approved'])).toBe(0)
  // It had left when the process died: whether it arrived nobody knows.
  expect(await resumeAfter(['approved', 'sending'], ['approved'])).toBe(0)
})

it('where requests go first, one that failed goes with the next commit and never by itself', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'network-parts-'))
  try {
    const queue = await RequestQueue.open(join(directory, 'queue'))
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push((await queue.add(REQUEST, await queue.spool(Readable.from([])))).id)
    await queue.approve(queue.summaries())
    await queue.move(ids[0] ?? '', 'sending')
    await queue.move(ids[0] ?? '', 'unknown', 'it left')
    await queue.close()
    const parts = new NetworkParts(
      () => directory,
      () => undefined,
    )
    const record = branchRecord(ID, { state: 'held', commit: { id: 'c1', at: '', digest: 'd' } })
    const { resolved } = record.profile
    const network = { ...resolved.network, replay: 'before-files' as const }
    const first = { ...record, profile: { ...record.profile, resolved: { ...resolved, network } } }
    expect(await parts.standing(first)).toEqual({ sent: 0, stopped: `request ${ids[0]} is unknown: it left` })
    expect(await parts.act(first, ids[0] ?? '', 'resume', 'again')).toMatchObject({ sent: 0, waits: true })
    await expect(parts.act(first, ids[1] ?? '', 'resume', '')).rejects.toMatchObject({ code: 'wrong-state' })
    await parts.act(first, ids[1] ?? '', 'skip', 'not wanted')
    expect((await parts.view(first)).map(({ state }) => state)).toEqual(['queued', 'skipped', 'approved'])
    expect(await parts.standing(first)).toEqual({ sent: 0, stopped: null })
  } finally {
    rmSync(directory, { recursive: true })
  }
})

it('a queue without requests is looked at and not written; one with a torn end is opened', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'network-parts-'))
  try {
    await (await RequestQueue.open(join(directory, 'queue'))).close()
    const log = join(directory, 'queue', 'queue.log')
    utimesSync(log, 0, 0)
    const parts = new NetworkParts(
      () => directory,
      () => undefined,
    )
    const record = branchRecord(ID, { state: 'stopped' })
    expect(await parts.pending(record)).toEqual([])
    expect(await parts.standing(record)).toEqual({ sent: 0, stopped: null })
    expect(await parts.replay(record)).toEqual({ sent: 0, problem: null })
    expect(statSync(log).mtimeMs).toBe(0)
    const { size } = statSync(log)
    appendFileSync(log, 'half a rec')
    expect(await parts.pending(record)).toEqual([])
    expect(statSync(log).size).toBe(size)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
