import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Chain } from './chain.ts'
import type { Verification } from './check.ts'
import { AuditLog } from './log.ts'
import { archiveOld } from './prune.ts'
import { encodeRecord } from './record.ts'
import { segmentName } from './segment-name.ts'
import { linesOf, listSegments } from './segments.ts'
import { loadPublicKey } from './signer.ts'
import { TipFile } from './tip.ts'
import { verifyLog } from './verify.ts'

let directory = ''
const now = (): Date => new Date('2026-01-01T00:00:00Z')
const open = (segmentBytes = 600): Promise<AuditLog> => AuditLog.open(directory, { now, segmentBytes })
const verify = async (): Promise<Verification> => verifyLog(directory, await loadPublicKey(directory))
const place = (name: string): string => join(directory, name)

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'puzzled-audit-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function write(count: number, segmentBytes?: number): Promise<void> {
  const log = await open(segmentBytes)
  for (let at = 0; at < count; at++) await log.append('test', 'branch', { at })
  await log.close()
}

/** What root can do without the key: a log of the same records, chained anew, with a tip that fits. */
async function rewritten(change: (text: string) => string, keeps: (kind: string) => boolean): Promise<void> {
  const chain = new Chain()
  for (const segment of await listSegments(directory)) {
    const lines: string[] = []
    for (const line of (await readFile(place(segmentName(segment)), 'utf8')).split('\n').slice(0, -1)) {
      const record = JSON.parse(change(line)) as Parameters<typeof encodeRecord>[0]
      if (!keeps(record.kind)) continue
      const bytes = encodeRecord({ ...record, seq: chain.next, prev: chain.prev })
      chain.append(bytes)
      lines.push(`${bytes}\n`)
    }
    await writeFile(place(segmentName(segment)), lines.join(''))
  }
  await rm(place('tip'))
  const tip = new TipFile(directory)
  await tip.write({ next: chain.next, prev: chain.prev })
  await tip.close()
}

describe('a log that somebody rewrote who has not the key', () => {
  const forged = (text: string): string => text.replace('"at":2', '"at":7')

  it('is found out by the first head that does not fit', async () => {
    await write(20)
    await rewritten(forged, () => true)
    expect((await verify()).bad).toMatchObject({ why: expect.stringContaining('tree head') })
  })

  it('is found out where it has no heads', async () => {
    await write(20)
    await rewritten(forged, (kind) => kind !== 'tree-head')
    expect((await verify()).bad).toMatchObject({ segment: segmentName(2), offset: 0 })
    await expect(open()).rejects.toMatchObject({ code: 'audit-failed' })
  })

  it('says how much of it no head has signed yet', async () => {
    await write(3, 1 << 20)
    expect(await verify()).toMatchObject({ records: 4, signed: 3 })
    const log = await open(1 << 20)
    for (let at = 0; at < 3; at++) await log.append('test', 'branch', { at })
    expect(await verify()).toMatchObject({ bad: null, records: 7, signed: 3 })
    await log.close()
    expect(await verify()).toMatchObject({ records: 8, signed: 7 })
  })
})

describe('a log of which a part is gone', () => {
  it.each([1, 2, 3])('at its beginning, %d segments: nothing says that they were archived', async (count) => {
    await write(30)
    for (let segment = 1; segment <= count; segment++) await rm(place(segmentName(segment)))
    expect((await verify()).bad).toMatchObject({ seq: 0, segment: segmentName(1), offset: -1 })
  })

  it('beyond what was archived', async () => {
    const log = await open()
    for (let at = 0; at < 30; at++) await log.append('test', 'branch', { at })
    const all = await listSegments(directory)
    const limits = { maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 3_000 }
    const announce = (through: number) => log.append('archived', '', { through })
    const moved = await archiveOld(directory, limits, Date.now(), announce)
    expect(moved).toBeGreaterThan(2)
    expect((await verify()).bad).toBeNull()
    for (let at = 0; at < 30; at++) await log.append('test', 'branch', { at })
    await log.close()
    expect((await verify()).bad).toBeNull()
    await rm(place(segmentName(moved + 1)))
    expect((await verify()).bad).toMatchObject({ segment: segmentName(1), offset: -1 })
    // Copied back, even a part of it, everything is there again.
    expect(all.length).toBeGreaterThan(moved)
  })

  it('at its end, together with the file that says how far it had come', async () => {
    await write(6, 1 << 20)
    const lines = (await readFile(place(segmentName(1)), 'utf8')).split('\n')
    await writeFile(place(segmentName(1)), `${lines.slice(0, 3).join('\n')}\n`)
    await rm(place('tip'))
    expect((await verify()).bad).toMatchObject({ seq: 3, why: expect.stringContaining('tip') })
    await expect(open()).rejects.toMatchObject({ code: 'audit-failed' })
  })
})

describe('the key of a log', () => {
  it('that is gone is not replaced by a new one', async () => {
    await write(3)
    const pub = await readFile(place('audit.pub'), 'utf8')
    await rm(place('audit.key'))
    await expect(open()).rejects.toMatchObject({
      code: 'audit-failed',
      message: expect.stringMatching(/key/),
    })
    expect(await readFile(place('audit.pub'), 'utf8')).toBe(pub)
    expect((await verify()).bad).toBeNull()
  })

  it('whose public half is gone writes it again; another public half is refused', async () => {
    await write(3)
    const pub = await readFile(place('audit.pub'), 'utf8')
    await rm(place('audit.pub'))
    await write(1)
    expect(await readFile(place('audit.pub'), 'utf8')).toBe(pub)
    const other = await mkdtemp(join(tmpdir(), 'puzzled-audit-'))
    try {
      await (await AuditLog.open(other, { now })).close()
      await rename(join(other, 'audit.pub'), place('audit.pub'))
      await expect(open()).rejects.toMatchObject({ code: 'audit-failed' })
      await rename(join(other, 'audit.key'), place('audit.key'))
      await expect(open()).rejects.toMatchObject({ code: 'audit-failed' })
    } finally {
      await rm(other, { recursive: true })
    }
  })

  it('is one, however many come first at the same time', async () => {
    const { loadSigner } = await import('./signer.ts')
    const signers = await Promise.all(Array.from({ length: 8 }, () => loadSigner(directory)))
    const pems = signers.map(({ publicKey }) => publicKey.export({ type: 'spki', format: 'pem' }))
    expect(new Set(pems)).toEqual(new Set([await readFile(place('audit.pub'), 'utf8')]))
    expect((await readdir(directory)).sort()).toEqual(['audit.key', 'audit.pub'])
  })
})

describe('beside a daemon that writes', () => {
  it('verify does not take what comes meanwhile for what is missing', async () => {
    const log = await open(2_000)
    let going = true
    const writing = (async () => {
      for (let at = 0; going; at++) await log.append('test', 'branch', { at })
    })()
    try {
      for (let round = 0; round < 15; round++) expect((await verify()).bad).toBeNull()
    } finally {
      going = false
      await writing
      await log.close()
    }
  })

  it('a reader goes on in the archive when retention moves what it reads', async () => {
    await write(30)
    const segments = await listSegments(directory)
    await mkdir(place('archive'))
    await rename(place(segmentName(1)), place(join('archive', segmentName(1))))
    let lines = 0
    for (const segment of segments) for await (const some of linesOf(directory, segment)) lines += some.length
    expect(lines).toBe((await verifyAll(segments)).length)
  })
})

async function verifyAll(segments: readonly number[]): Promise<string[]> {
  const texts = await Promise.all(
    segments.map((segment) =>
      readFile(place(segmentName(segment)), 'utf8').catch(() =>
        readFile(place(join('archive', segmentName(segment))), 'utf8'),
      ),
    ),
  )
  return texts.flatMap((text) => text.split('\n').slice(0, -1))
}

describe('a log that is used in a way that it should not be', () => {
  it('refuses what comes after its end, and stays whole', async () => {
    const log = await AuditLog.open(directory, { now, retryMillis: 0 })
    await log.append('test', 'branch', {})
    const closing = log.close()
    const late = [log.append('late', 'branch', {}), log.append('late', 'branch', {})]
    for (const one of late) await expect(one).rejects.toMatchObject({ code: 'audit-failed' })
    await closing
    for (let tries = 0; tries < 3; tries++)
      await expect(log.append('late', 'branch', {})).rejects.toMatchObject({ code: 'audit-failed' })
    expect(await verify()).toMatchObject({ bad: null, records: 2, heads: 1 })
  })

  it('refuses a record that cannot be written, and nothing else', async () => {
    const log = await open(1 << 20)
    const circle: Record<string, unknown> = {}
    circle.circle = circle
    let deep: unknown = 0
    for (let depth = 0; depth < 200_000; depth++) deep = [deep]
    const facts = [circle, { deep }, { huge: 'x'.repeat(33 << 20) }]
    const [first, ...rest] = await Promise.allSettled([
      log.append('test', 'branch', { at: 0 }),
      ...facts.map((one) => log.append('test', 'branch', one)),
      log.append('test', 'branch', { at: Number.NaN, no: undefined, big: 2n ** 70n }),
    ])
    expect(first.status).toBe('fulfilled')
    expect(rest.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled'])
    await log.close()
    expect(await verify()).toMatchObject({ bad: null, records: 3 })
  })

  it('keeps what a record said when it was given, not what became of the object', async () => {
    const log = await open()
    const facts = { path: 'as it was' }
    const written = log.append('test', 'branch', facts)
    facts.path = 'changed'
    await written
    await log.close()
    expect(await readFile(place(segmentName(1)), 'utf8')).toContain('as it was')
  })

  it('does not write over a segment that another writer made', async () => {
    const log = await open(300)
    await log.append('test', 'branch', { at: 0 })
    await writeFile(place(segmentName(2)), 'evidence\n')
    const tries = Array.from({ length: 4 }, (_, at) => log.append('test', 'branch', { at }))
    for (const one of tries) await one.catch(() => undefined)
    await log.append('test', 'branch', { at: 9 }).catch(() => undefined)
    await log.close().catch(() => undefined)
    expect(await readFile(place(segmentName(2)), 'utf8')).toMatch(/^evidence\n/)
  })

  it('a clock that was set back changes nothing', async () => {
    let time = Date.parse('2026-06-01T00:00:00Z')
    const log = await AuditLog.open(directory, { now: () => new Date(time), segmentBytes: 600 })
    for (let at = 0; at < 20; at++) {
      time -= 86_400_000
      await log.append('test', 'branch', { at })
    }
    await log.close()
    await write(2)
    expect((await verify()).bad).toBeNull()
  })
})

describe('garbage', () => {
  it('without any line end is named, and not read into memory', async () => {
    await write(3, 1 << 20)
    await writeFile(place(segmentName(1)), Buffer.alloc(40 << 20, 'x'), { flag: 'a' })
    expect((await verify()).bad).toMatchObject({ seq: 4, why: expect.stringContaining('longer') })
    await expect(open()).rejects.toMatchObject({ code: 'audit-failed' })
  })

  it('that looks deep is no record', async () => {
    await write(3, 1 << 20)
    await writeFile(place(segmentName(1)), `{"seq":4,"kind":"tree-head",${'['.repeat(1 << 20)}\n`, {
      flag: 'a',
    })
    expect((await verify()).bad).toMatchObject({ seq: 4 })
  })
})
