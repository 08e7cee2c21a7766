import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { exportLine } from './export.ts'
import { AuditLog } from './log.ts'
import { checkConsistency, checkInclusion, proveConsistency, proveInclusion } from './prove.ts'
import { archiveOld } from './prune.ts'
import { ARCHIVED_KIND, encodeRecord, FIRST_PREV } from './record.ts'
import { listSegments } from './segments.ts'
import { loadPublicKey } from './signer.ts'
import { verifyLog } from './verify.ts'

const hostile = 'a\nCEF:0|x=y|\\ "\u001b[2J'
const line = encodeRecord({
  seq: 7,
  prev: FIRST_PREV,
  time: '2026-01-01T00:00:00.000Z',
  kind: 'commit',
  branch: hostile,
  facts: { path: hostile, bytes: 3n },
})

describe('exported lines', () => {
  it.each(['jsonl', 'cef', 'ocsf'] as const)('%s stays one line whatever the names are', (format) => {
    expect(exportLine(line, format, '1|2')).not.toMatch(/[\r\n]/)
  })

  it('escapes what has a meaning in CEF', () => {
    const text = exportLine(line, 'cef', '1|2')
    // Eight fields; a bar in the extension needs no escape, and the hostile name is there twice with two of them.
    expect(text.split(/(?<!\\)\|/)).toHaveLength(8 + 4)
    expect(text).toContain('CEF:0|puzzled|puzzled|1\\|2|commit|commit|4|rt=1767225600000 externalId=7')
    expect(text).toContain('x\\=y')
  })

  it('is an API activity in OCSF', () => {
    expect(JSON.parse(exportLine(line, 'ocsf', '1'))).toMatchObject({
      class_uid: 6003,
      type_uid: 600_399,
      activity_name: 'commit',
      resources: [{ uid: hostile }],
      unmapped: { facts: { bytes: '3' } },
    })
  })
})

describe('proofs and retention', () => {
  let directory = ''
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'puzzled-audit-'))
    const log = await AuditLog.open(directory, { now: () => new Date(0), segmentBytes: 500 })
    for (let at = 0; at < 25; at++) await log.append('test', 'b', { at })
    await log.close()
  })
  afterEach(() => rm(directory, { recursive: true }))

  it('prove that a record is in the log, and only that record', async () => {
    for (const seq of [0, 3, 24]) {
      const proof = await proveInclusion(directory, seq)
      expect(checkInclusion(proof)).toBe(true)
      expect(checkInclusion({ ...proof, record: proof.record.replace('test', 'tset') })).toBe(false)
    }
    await expect(proveInclusion(directory, 999)).rejects.toMatchObject({ code: 'usage' })
  })

  it('prove that the log only grew', async () => {
    for (const from of [1, 8, 20]) {
      const proof = await proveConsistency(directory, from)
      expect(checkConsistency(proof)).toBe(true)
      expect(checkConsistency({ ...proof, to: { ...proof.to, root: FIRST_PREV } })).toBe(false)
      const key = await loadPublicKey(directory)
      expect((await verifyLog(directory, key, proof.from)).bad).toBeNull()
      const other = { size: from, root: FIRST_PREV }
      expect((await verifyLog(directory, key, other)).bad).toMatchObject({
        seq: from - 1,
        offset: expect.any(Number),
      })
    }
  })

  it('a log that is shorter than what was kept of it is not that log', async () => {
    const bad = (
      await verifyLog(directory, await loadPublicKey(directory), { size: 9_999, root: FIRST_PREV })
    ).bad
    expect(bad).toMatchObject({ seq: 9_998, offset: -1 })
    await expect(proveConsistency(directory, 9_999)).rejects.toMatchObject({ code: 'usage' })
  })

  it('retention archives the oldest segments and the chain still holds', async () => {
    const log = await AuditLog.open(directory, { now: () => new Date(0), segmentBytes: 500 })
    const announced: number[] = []
    const moved = await archiveOld(
      directory,
      { maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 1500 },
      Date.now(),
      (through) => {
        announced.push(through)
        return log.append(ARCHIVED_KIND, '', { through })
      },
    )
    await log.close()
    expect(moved).toBeGreaterThan(2)
    expect(announced).toEqual([moved])
    expect(await listSegments(join(directory, 'archive'))).toEqual(
      Array.from({ length: moved }, (_, at) => at + 1),
    )
    expect((await verifyLog(directory, await loadPublicKey(directory))).bad).toBeNull()
    await expect(proveInclusion(directory, 3)).rejects.toMatchObject({ code: 'audit-failed' })
  })
})
