import type { KeyObject } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { KeptHead, Verification } from './check.ts'
import { AuditLog } from './log.ts'
import { checkPart, joined, type Question } from './parts.ts'
import { archiveOld } from './prune.ts'
import { segmentName } from './segment-name.ts'
import { listSegments } from './segments.ts'
import { loadPublicKey } from './signer.ts'
import { TipFile } from './tip.ts'
import { verifyLog } from './verify.ts'

let room = ''
let log = ''
let key: KeyObject
const now = (): Date => new Date(0)

async function write(directory: string, count: number, name = 'x'): Promise<void> {
  const open = await AuditLog.open(directory, { now, segmentBytes: 900 })
  for (let at = 0; at < count; at++) await open.append('test', `b${at}`, { name })
  await open.close()
}

beforeEach(async () => {
  room = mkdtempSync(join(tmpdir(), 'puzzled-parts-'))
  log = join(room, 'log')
  await write(log, 20)
  key = await loadPublicKey(log)
})
afterEach(() => rmSync(room, { recursive: true }))

/** Each segment by itself, without threads: what they would have said. */
async function inParts(kept: KeptHead | null = null): Promise<Verification | null> {
  const [tip, segments] = [await new TipFile(log).read(), await listSegments(log)]
  const question: Question = { directory: log, segments, tip, kept }
  const parts = await Promise.all(segments.map((segment) => checkPart(question, key, segment)))
  return joined(parts, question)
}
const inOrder = (kept: KeptHead | null = null): Promise<Verification> => verifyLog(log, key, kept, 1)
const path = (segment: number): string => join(log, segmentName(segment))

describe('segments by themselves', () => {
  it('say what reading in order says, also of a torn end and of a head that was kept', async () => {
    const whole = await inOrder()
    expect(whole).toMatchObject({ bad: null, torn: false })
    expect((await listSegments(log)).length).toBeGreaterThan(3)
    expect(await inParts()).toEqual(whole)
    expect(await verifyLog(log, key, null, 2)).toEqual(whole)
    const kept = { size: whole.records, root: whole.root }
    await write(log, 5)
    const last = (await listSegments(log)).at(-1) ?? 0
    writeFileSync(path(last), Buffer.concat([readFileSync(path(last)), Buffer.from('{"seq":')]))
    expect(await inOrder(kept)).toMatchObject({ bad: null, torn: true })
    expect(await inParts(kept)).toEqual(await inOrder(kept))
    expect(await inParts({ ...kept, size: kept.size - 1 })).toBeNull()
    expect(await inParts({ ...kept, size: 9_999 })).toBeNull()
  })

  it('say what reading in order says of a log whose beginning was archived', async () => {
    const open = await AuditLog.open(log, { now, segmentBytes: 900 })
    const limits = { maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 2_500 }
    await archiveOld(log, limits, 0, (through) => open.append('archived', '', { through }))
    await open.close()
    expect((await listSegments(log))[0]).toBeGreaterThan(1)
    expect(await inOrder()).toMatchObject({ bad: null })
    expect(await inParts()).toEqual(await inOrder())
    // One more of them gone, of which nothing is on record.
    rmSync(path((await listSegments(log))[0] ?? 0))
    expect((await inOrder()).bad).not.toBeNull()
    expect(await inParts()).toBeNull()
  })

  it('never say of a changed log that it is good', async () => {
    let changes = 0
    for (const segment of await listSegments(log)) {
      const bytes = readFileSync(path(segment))
      for (let at = segment; at < bytes.length; at += 29) {
        const changed = Buffer.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ 1
        writeFileSync(path(segment), changed)
        expect([segment, at, await inParts()]).toEqual([segment, at, null])
        changes++
      }
      writeFileSync(path(segment), bytes)
    }
    expect(changes).toBeGreaterThan(100)
    expect(await inParts()).not.toBeNull()
  })

  it('of another log with the same key do not stand for those of this one', async () => {
    const other = join(room, 'other')
    cpSync(log, other, { recursive: true })
    for (const segment of await listSegments(other)) rmSync(join(other, segmentName(segment)))
    rmSync(join(other, 'tip'))
    await write(other, 20, 'y')
    const segments = await listSegments(log)
    expect(await listSegments(other)).toEqual(segments)
    for (const segment of segments) {
      const bytes = readFileSync(path(segment))
      writeFileSync(path(segment), readFileSync(join(other, segmentName(segment))))
      expect([segment, await inParts()]).toEqual([segment, null])
      writeFileSync(path(segment), bytes)
    }
  })
})

describe('threads', () => {
  it.each([
    ['a record changed', (bytes: Buffer) => Buffer.from(bytes.toString('latin1').replace('"x"', '"y"'))],
    ['a line cut', (bytes: Buffer) => bytes.subarray(0, -9)],
    ['everything gone', () => Buffer.alloc(0)],
  ])('name the same record: %s', async (_what, change) => {
    for (const segment of (await listSegments(log)).slice(0, 4)) {
      const bytes = readFileSync(path(segment))
      writeFileSync(path(segment), change(bytes))
      const told = await verifyLog(log, key, null, 2)
      expect(told.bad).not.toBeNull()
      expect(told).toEqual(await inOrder())
      writeFileSync(path(segment), bytes)
    }
    expect(await verifyLog(log, key, null, 2)).toMatchObject({ bad: null })
  })

  it('report what cannot be read as reading in order does', async () => {
    rmSync(path(3))
    mkdirSync(path(3))
    await expect(inOrder()).rejects.toMatchObject({ code: 'EISDIR' })
    await expect(verifyLog(log, key, null, 2)).rejects.toMatchObject({ code: 'EISDIR' })
    // What is wrong before it counts more.
    writeFileSync(path(2), readFileSync(path(1)))
    expect((await inOrder()).bad).not.toBeNull()
    expect(await verifyLog(log, key, null, 2)).toEqual(await inOrder())
  })
})
