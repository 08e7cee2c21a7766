import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { armFailpoint, observeFailpoints } from '../lib/failpoint.ts'
import type { Verification } from './check.ts'
import { AuditLog } from './log.ts'
import { ARCHIVED_KIND } from './record.ts'
import { segmentName } from './segment-name.ts'
import { listSegments } from './segments.ts'
import { loadPublicKey } from './signer.ts'
import { verifyLog } from './verify.ts'

let directory = ''
const now = (): Date => new Date('2026-01-01T00:00:00Z')

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'puzzled-audit-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function write(count: number, segmentBytes?: number): Promise<void> {
  const log = await AuditLog.open(directory, { now, ...(segmentBytes === undefined ? {} : { segmentBytes }) })
  for (let at = 0; at < count; at++) await log.append('test', 'branch', { at, name: `line\n"${at}"\u001b` })
  await log.close()
}

const verify = async (): Promise<Verification> => verifyLog(directory, await loadPublicKey(directory))
const linesIn = async (segment = 1): Promise<string[]> =>
  (await readFile(join(directory, segmentName(segment)), 'utf8')).split('\n').slice(0, -1)
const put = (lines: readonly string[], segment = 1): Promise<void> =>
  writeFile(join(directory, segmentName(segment)), lines.map((line) => `${line}\n`).join(''))

describe('an untouched log', () => {
  it('verifies, over restarts and segments, and keeps one record per line whatever the names are', async () => {
    await write(5, 600)
    await write(20, 600)
    const checked = await verify()
    expect(checked).toMatchObject({ bad: null, torn: false })
    expect(checked.heads).toBeGreaterThan(4)
    expect(checked.records).toBe(25 + checked.heads)
    expect((await readdir(directory)).filter((name) => name.endsWith('.jsonl')).length).toBeGreaterThan(3)
  })

  it('still verifies when old segments were archived', async () => {
    await write(30, 600)
    const log = await AuditLog.open(directory, { now, segmentBytes: 600 })
    await log.append(ARCHIVED_KIND, '', { through: 2 })
    await log.close()
    await rm(join(directory, segmentName(1)))
    await rm(join(directory, segmentName(2)))
    expect(await verify()).toMatchObject({ bad: null })
    await write(1, 600)
    expect(await verify()).toMatchObject({ bad: null })
  })

  it('shares one write among those who wait', async () => {
    let syncs = 0
    observeFailpoints((name) => {
      if (name === 'audit.before-sync') syncs++
    })
    const log = await AuditLog.open(directory, { now })
    const numbers = await Promise.all(
      Array.from({ length: 1000 }, (_, at) => log.append('test', 'b', { at })),
    )
    observeFailpoints(undefined)
    await log.close()
    expect(numbers).toEqual(Array.from({ length: 1000 }, (_, at) => at))
    expect(syncs).toBe(1)
  })
})

describe('a log that somebody touched', () => {
  it.each([
    ['a dropped record', (lines: string[]) => lines.toSpliced(2, 1), 2],
    ['a repeated record', (lines: string[]) => lines.toSpliced(2, 0, lines[1] ?? ''), 2],
    ['records out of order', (lines: string[]) => lines.toSpliced(1, 2, lines[2] ?? '', lines[1] ?? ''), 1],
    ['a cut tail', (lines: string[]) => lines.slice(0, -3), 4],
    ['an emptied log', () => [], 0],
  ])('names %s', async (_what, change, seq) => {
    await write(6)
    await put(change(await linesIn()))
    expect((await verify()).bad).toMatchObject({ seq })
    await expect(AuditLog.open(directory, { now })).rejects.toMatchObject({ code: 'audit-failed' })
  })

  it('names a segment that is missing in the middle', async () => {
    await write(30, 600)
    await rm(join(directory, segmentName(2)))
    expect((await verify()).bad).toMatchObject({ segment: segmentName(3), offset: 0 })
  })

  it('names a head whose signature is of another key', async () => {
    await write(3)
    const other = await mkdtemp(join(tmpdir(), 'puzzled-audit-'))
    try {
      await (await AuditLog.open(other, { now })).close()
      const { bad } = await verifyLog(directory, await loadPublicKey(other))
      expect(bad).toMatchObject({ seq: 3, why: 'the signature of the tree head is wrong' })
    } finally {
      await rm(other, { recursive: true })
    }
  })
})

describe('a crash', () => {
  const steps = ['audit.before-append', 'audit.before-sync', 'audit.before-tip', 'audit.after-tip']
  const rotation = ['audit.sealed', 'audit.segment-created', 'audit.rotated']

  it.each([...steps, ...rotation])('at %s loses nothing that was acknowledged', async (step) => {
    const log = await AuditLog.open(directory, { now, segmentBytes: 400 })
    const acknowledged: number[] = []
    for (let at = 0; at < 4; at++) acknowledged.push(await log.append('test', 'b', { at }))
    const disarm = armFailpoint(step, () => {
      throw Object.assign(new Error('died here'), { code: 'EIO' })
    })
    for (let at = 0; at < 8; at++)
      await log.append('test', 'b', { at }).then(
        (seq) => acknowledged.push(seq),
        (error: unknown) => expect(error).toMatchObject({ code: 'audit-failed' }),
      )
    disarm()
    // Nothing more is accepted by the log that failed.
    await expect(log.append('test', 'b', {})).rejects.toMatchObject({ code: 'audit-failed' })
    await log.close()
    await write(2, 400)
    const checked = await verify()
    expect(checked.bad).toBeNull()
    expect(checked.records).toBeGreaterThan(Math.max(...acknowledged))
  })

  it.each([...steps, ...rotation])(
    'of the disk at %s: the log goes on by itself when it can',
    async (step) => {
      const log = await AuditLog.open(directory, { now, segmentBytes: 400, retryMillis: 0 })
      const acknowledged: number[] = []
      const append = async (at: number): Promise<void> => {
        acknowledged.push(await log.append('test', 'b', { at }))
      }
      for (let at = 0; at < 4; at++) await append(at)
      let times = 3
      const disarm = armFailpoint(step, () => {
        if (times-- > 0) throw Object.assign(new Error('no room here'), { code: 'ENOSPC' })
      })
      let refused = 0
      for (let at = 100; at < 120; at++) await append(at).catch(() => refused++)
      disarm()
      expect(refused).toBe(3)
      await log.close()
      const lines = (await Promise.all((await listSegments(directory)).map(linesIn))).flat()
      const records = lines.map((line) => JSON.parse(line) as { seq: number; kind: string; facts: object })
      // What was refused is told; whoever was told that the record is there finds it under its number.
      const gaps = records.filter(({ kind }) => kind === 'log-reopened').map(({ facts }) => facts)
      expect(gaps.length).toBeGreaterThan(0)
      for (const gap of gaps)
        expect(gap).toMatchObject({ refused: expect.any(Number), cause: 'no room here' })
      expect(acknowledged.map((seq) => records[seq]?.kind)).toEqual(acknowledged.map(() => 'test'))
      expect(await verify()).toMatchObject({ bad: null, torn: false, records: records.length })
    },
  )

  it('of the disk is not asked about more often than it should be', async () => {
    const log = await AuditLog.open(directory, { now, retryMillis: 60_000 })
    await log.append('test', 'b', {})
    const disarm = armFailpoint('audit.before-sync', () => {
      throw new Error('no room here')
    })
    await expect(log.append('test', 'b', {})).rejects.toMatchObject({ code: 'audit-failed' })
    disarm()
    await expect(log.append('test', 'b', {})).rejects.toMatchObject({ code: 'audit-failed' })
    await log.close()
    await write(1)
    expect((await verify()).bad).toBeNull()
  })

  it('of the disk during which somebody changed the log: it stays shut', async () => {
    const log = await AuditLog.open(directory, { now, retryMillis: 0 })
    for (let at = 0; at < 5; at++) await log.append('test', 'b', { at })
    const disarm = armFailpoint('audit.before-append', () => {
      throw new Error('no room here')
    })
    await expect(log.append('test', 'b', {})).rejects.toMatchObject({ code: 'audit-failed' })
    disarm()
    const lines = await linesIn()
    await put(lines.with(2, (lines[2] ?? '').replace('"at":2', '"at":7')))
    for (let tries = 0; tries < 2; tries++)
      await expect(log.append('test', 'b', {})).rejects.toMatchObject({ code: 'audit-failed' })
    await log.close()
    expect((await verify()).bad).toMatchObject({ seq: 2 })
  })

  it('in the middle of a line sets the torn part aside and goes on', async () => {
    await write(3)
    const path = join(directory, segmentName(1))
    await writeFile(path, Buffer.concat([await readFile(path), Buffer.from('{"seq":4,"prev')]))
    expect(await verify()).toMatchObject({ bad: null, torn: true })
    await write(1)
    expect(await verify()).toMatchObject({ bad: null, torn: false })
    expect((await readdir(directory)).filter((name) => name.startsWith('torn-'))).toHaveLength(1)
  })
})

it('refuses a key that others can read', async () => {
  await write(1)
  await chmod(join(directory, 'audit.key'), 0o644)
  await expect(AuditLog.open(directory, { now })).rejects.toMatchObject({ code: 'audit-failed' })
})
