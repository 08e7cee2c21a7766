import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuditLog } from './log.ts'
import { listSegments, segmentName } from './segments.ts'
import { loadPublicKey } from './signer.ts'
import { type Verification, verifyLog } from './verify.ts'

/** A log of several segments and every line of it, in order. */
let original = ''
let room = ''
const segments: string[][] = []
const flat = (): string[] => segments.flat()

beforeAll(async () => {
  original = await mkdtemp(join(tmpdir(), 'puzzled-tamper-'))
  room = await mkdtemp(join(tmpdir(), 'puzzled-tamper-'))
  const log = await AuditLog.open(original, { now: () => new Date(0), segmentBytes: 900 })
  for (let at = 0; at < 14; at++) await log.append('test', `b${at}`, { at, name: `"\n${at}` })
  await log.close()
  for (const segment of await listSegments(original))
    segments.push((await readFile(join(original, segmentName(segment)), 'utf8')).split('\n').slice(0, -1))
})
afterAll(async () => {
  await rm(original, { recursive: true })
  await rm(room, { recursive: true })
})

/** The log with other lines, cut into segments where it was cut before. */
async function verifyWith(lines: readonly string[]): Promise<Verification> {
  await cp(original, room, { recursive: true, force: true })
  let from = 0
  for (const [at, own] of segments.entries()) {
    const end = at === segments.length - 1 ? lines.length : from + own.length
    const text = lines.slice(from, end).map((line) => `${line}\n`)
    await writeFile(join(room, segmentName(at + 1)), text.join(''))
    from = end
  }
  return verifyLog(room, await loadPublicKey(original))
}

const index = (): fc.Arbitrary<number> => fc.nat(flat().length - 1)

describe('verify names the first record that is wrong', () => {
  it('has several segments to look at, and finds nothing in the untouched log', async () => {
    expect(segments.length).toBeGreaterThan(3)
    expect(await verifyWith(flat())).toMatchObject({ bad: null, torn: false, records: flat().length })
  })

  it('any record dropped', () =>
    fc.assert(
      fc.asyncProperty(index(), async (at) => {
        const { bad } = await verifyWith(flat().toSpliced(at, 1))
        // Of the very last one the tip tells.
        expect(bad?.seq).toBe(at)
      }),
      { numRuns: 60 },
    ))

  it('any record repeated', () =>
    fc.assert(
      fc.asyncProperty(index(), index(), async (from, to) => {
        const { bad } = await verifyWith(flat().toSpliced(to, 0, flat()[from] ?? ''))
        // A repeated record that stands where it belongs is the one after it that does not.
        expect(bad?.seq).toBe(from === to ? to + 1 : to)
      }),
      { numRuns: 60 },
    ))

  it('any two records exchanged', () =>
    fc.assert(
      fc.asyncProperty(index(), index(), async (a, b) => {
        fc.pre(a !== b)
        const lines = flat()
        const [first, second] = [lines[a] ?? '', lines[b] ?? '']
        lines[a] = second
        lines[b] = first
        expect((await verifyWith(lines)).bad?.seq).toBe(Math.min(a, b))
      }),
      { numRuns: 60 },
    ))

  it('any byte of any segment flipped', () =>
    fc.assert(
      fc.asyncProperty(index(), fc.nat(), fc.integer({ min: 1, max: 255 }), async (at, offset, flip) => {
        const lines = flat()
        const bytes = Buffer.from(lines[at] ?? '')
        const where = offset % bytes.length
        bytes[where] = (bytes[where] ?? 0) ^ flip
        // Not text any more, perhaps: the bytes are what counts.
        lines[at] = bytes.toString('latin1')
        const changed = bytes.toString('latin1') !== Buffer.from(flat()[at] ?? '').toString('latin1')
        fc.pre(changed && flat().every((line) => Buffer.from(line).toString('latin1') === line))
        const { bad } = await verifyWith(lines)
        expect(bad?.seq === at || bad?.seq === at + 1).toBe(true)
      }),
      { numRuns: 150 },
    ))
})
