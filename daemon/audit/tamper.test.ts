import type { KeyObject } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PuzzledError } from '../lib/errors.ts'
import { type BadRecord, LogCheck } from './check.ts'
import { AuditLog } from './log.ts'
import { segmentName, segmentNumber } from './segment-name.ts'
import { listSegments, split } from './segments.ts'
import { loadPublicKey, loadSigner, verifiesHead } from './signer.ts'
import { type Tip, TipFile } from './tip.ts'
import { verifyLog } from './verify.ts'
import { type HeadCheck, LogWalk } from './walk.ts'

/** A log of several segments, so small that everything that one change can do to it is tried. */
let room = ''
let key: KeyObject
let tip: Tip | null
const files = new Map<string, Buffer>()
/** Every line with its newline, by its number. */
const lines: { segment: string; offset: number; bytes: Buffer }[] = []
const names = (): string[] => [...new Set(lines.map(({ segment }) => segment))]
const fileOf = (name: string): Buffer => files.get(name) ?? Buffer.alloc(0)

beforeAll(async () => {
  room = mkdtempSync(join(tmpdir(), 'puzzled-tamper-'))
  const log = await AuditLog.open(room, { now: () => new Date(0), segmentBytes: 500 })
  for (let at = 0; at < 6; at++) await log.append('test', `b${at}`, { name: `"\n${at}` })
  await log.close()
  ;[key, tip] = [await loadPublicKey(room), await new TipFile(room).read()]
  for (const name of readdirSync(room)) files.set(name, readFileSync(join(room, name)))
  for (const number of await listSegments(room)) {
    const segment = segmentName(number)
    for (const line of split(fileOf(segment), 0).lines)
      lines.push({ segment, offset: line.offset, bytes: Buffer.concat([line.bytes, Buffer.from('\n')]) })
  }
})
afterEach(() => {
  for (const [name, bytes] of files) writeFileSync(join(room, name), bytes)
})
afterAll(() => rmSync(room, { recursive: true }))

const put = (name: string, bytes: Uint8Array): void => writeFileSync(join(room, name), bytes)
const badIn = async (): Promise<BadRecord | null> => (await verifyLog(room, key)).bad

/** Signatures are what takes time, and the same few are asked for again and again. */
const judged = new Map<string, boolean>()
const verifies: HeadCheck = (by, size, root, signature) => {
  const asked = `${size} ${Buffer.from(root).toString('hex')} ${signature}`
  const good = judged.get(asked) ?? verifiesHead(by, size, root, signature)
  judged.set(asked, good)
  return good
}

/** What `verifyLog` says of these segments, without a disk. */
function badWith(changed: ReadonlyMap<string, Buffer>): BadRecord | null {
  const all = names().map((name) => segmentNumber(name) ?? 0)
  const check = new LogCheck(new LogWalk(key, verifies, false), all, tip)
  for (const number of all) {
    const name = segmentName(number)
    const { lines: whole, end, left } = split(changed.get(name) ?? fileOf(name), 0)
    check.begin(number)
    const rest = left.length === 0 ? [] : [{ bytes: left, offset: end, whole: false }]
    for (const line of [...whole, ...rest]) if (check.take(line)) return check.result().bad
  }
  check.end()
  return check.result().bad
}

/** The log with these lines, each in its segment. */
const badOf = (changed: readonly (typeof lines)[number][]): BadRecord | null =>
  badWith(
    new Map(
      names().map((name) => [
        name,
        Buffer.concat(changed.filter(({ segment }) => segment === name).map(({ bytes }) => bytes)),
      ]),
    ),
  )

describe('verify names exactly the record', () => {
  it('and none of an untouched log that has several segments and heads', async () => {
    expect(names().length).toBeGreaterThan(2)
    expect(await badIn()).toBeNull()
  })

  // Another character, no character, a line end, a quote, nothing, and one that JSON does not notice.
  it.each([
    ['flipped', (byte: number) => byte ^ 1],
    ['made no character', (byte: number) => byte ^ 0x80],
    ['made a line end', () => 10],
    ['made a quote', () => 34],
    ['made nothing', () => 0],
    ['made another case', (byte: number) => byte ^ 32],
  ])('of which any byte was %s', (_how, change) => {
    let tried = 0
    for (const [seq, { segment, offset, bytes }] of lines.entries())
      for (let at = offset; at < offset + bytes.length; at++) {
        const damaged = Buffer.from(fileOf(segment))
        damaged[at] = change(damaged[at] ?? 0)
        if (damaged[at] === fileOf(segment)[at]) continue
        const bad = badWith(new Map([[segment, damaged]]))
        expect([at, bad?.seq, bad?.why]).toEqual([at, seq, bad?.why])
        tried++
      }
    expect(tried).toBeGreaterThan(3_000)
  })

  it('that is dropped', () => {
    for (const seq of lines.keys()) expect(badOf(lines.toSpliced(seq, 1))?.seq).toBe(seq)
  })

  it('that is repeated, wherever', () => {
    for (const [from, line] of lines.entries())
      for (const [to, place] of lines.entries()) {
        const repeated = { ...line, segment: place.segment }
        // Where it stands right it is the one after it that does not.
        const bad = badOf(lines.toSpliced(to, 0, repeated))
        expect([from, to, bad?.seq]).toEqual([from, to, from === to ? to + 1 : to])
      }
  })

  it('of any two that are exchanged', () => {
    for (const [a, first] of lines.entries())
      for (const [b, second] of [...lines.entries()].slice(a + 1)) {
        const changed = lines
          .with(a, { ...first, bytes: second.bytes })
          .with(b, { ...second, bytes: first.bytes })
        expect([a, b, badOf(changed)?.seq]).toEqual([a, b, a])
      }
  })

  it('where a segment is cut at any byte', () => {
    for (const [seq, { segment, offset, bytes }] of lines.entries())
      for (let at = offset; at < offset + bytes.length; at++) {
        const bad = badWith(new Map([[segment, fileOf(segment).subarray(0, at)]]))
        expect([at, bad?.seq]).toEqual([at, seq])
      }
  })

  it('where a segment is gone, empty, or another one', async () => {
    for (const [index, name] of names().entries()) {
      const first = lines.findIndex(({ segment }) => segment === name)
      rmSync(join(room, name))
      expect([name, 'gone', (await badIn())?.seq]).toEqual([name, 'gone', first])
      put(name, Buffer.alloc(0))
      expect([name, 'empty', (await badIn())?.seq]).toEqual([name, 'empty', first])
      put(name, fileOf(names()[(index + 1) % names().length] ?? ''))
      expect([name, 'another', (await badIn())?.seq]).toEqual([name, 'another', first])
      put(name, fileOf(name))
    }
  })
})

describe('beside the segments', () => {
  it('one half of the tip that is damaged is harmless, and both are named', async () => {
    const whole = fileOf('tip')
    // Every place in the line of a slot, in one or the other of the two.
    for (let at = 0; at < whole.length; at += 3) {
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      put('tip', damaged)
      expect([at, await badIn()]).toEqual([at, null])
      damaged[(at + 128) % 256] = 255
      put('tip', damaged)
      await expect(badIn()).rejects.toMatchObject({ code: 'audit-failed' })
    }
  })

  it('a public key that was changed is none, verifies no head, or is the same key', async () => {
    const written = fileOf('audit.pub')
    const head = lines.findIndex(({ bytes }) => bytes.includes('"kind":"tree-head"'))
    for (const at of written.keys()) {
      const damaged = Buffer.from(written)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      put('audit.pub', damaged)
      const told = await loadPublicKey(room).then(
        async (other) => (other.equals(key) ? 'the same' : (await verifyLog(room, other)).bad?.seq),
        codeOf,
      )
      expect(['the same', 'audit-failed', head], `byte ${at}`).toContain(told)
    }
  })

  it('a key that was changed is refused, or is the same key', async () => {
    const written = fileOf('audit.key')
    for (const at of written.keys()) {
      const damaged = Buffer.from(written)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      put('audit.key', damaged)
      const told = await loadSigner(room).then(
        ({ publicKey }) => (publicKey.equals(key) ? 'the same' : 'another'),
        codeOf,
      )
      expect(['the same', 'audit-failed'], `byte ${at}`).toContain(told)
    }
  })
})

const codeOf = (error: unknown): unknown => (error instanceof PuzzledError ? error.code : error)
