import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ModelDisk } from '../../../test/fakes/model-disk.ts'
import { nameOf } from '../../lib/disk.ts'
import {
  type Begin,
  encodeLine,
  FIRST_CHECK,
  JOURNAL_VERSION,
  type JournalRecord,
  type Operation,
  RECORD_KINDS,
  RESERVE_BYTES,
} from './format.ts'
import { PackedOperations } from './packed-operations.ts'
import { parseJournal, stateOf } from './reader.ts'
import { append, continueJournal, publishIntent, writePending } from './writer.ts'

const C = 'c23456789bcd'
const META = { mode: 0o644, uid: 1, gid: 1, mtime: '5', xattrs: [] }
const AT = { base: 0, path: { path: 'a' }, parent: 7 }
const OLD = { ino: 9, dir: false, size: 1, mtime: '3' }
const BEGIN: Begin = {
  kind: 'begin',
  version: JOURNAL_VERSION,
  commit: C,
  branch: '23456789bc',
  digest: 'd',
  part: false,
  reverts: null,
  requester: 0,
  at: '2026-01-01T00:00:00.000Z',
  files: 4,
  roots: [{ path: '/b', dev: 1, ino: 2 }],
  areas: [{ path: '/s', dev: 1 }],
}
const OPERATIONS: Operation[] = [
  { kind: 'place', ...AT, area: 0, slot: '0', ino: 8, time: null },
  { kind: 'swap', ...AT, area: 0, slot: '1', ino: 8, time: '6', old: OLD },
  { kind: 'remove', ...AT, area: 0, slot: '2', old: OLD },
  { kind: 'adjust', ...AT, ino: 9, before: META, after: META },
]
const ENDINGS: JournalRecord[] = [
  { kind: 'done', at: 'x', warnings: [] },
  { kind: 'undone', at: 'x', reason: 'r' },
  { kind: 'stuck', at: 'x', reason: 'r' },
  { kind: 'retried', at: 'x' },
]

function write(): { disk: ModelDisk; dir: number; bytes: () => Buffer } {
  const disk = new ModelDisk(['j'])
  const dir = disk.openRoot('/j')
  writePending(disk, dir, BEGIN, OPERATIONS)
  publishIntent(disk, dir, C)
  return { disk, dir, bytes: () => Buffer.from(disk.readFile(dir, nameOf(`${C}.log`))) }
}

function read(bytes: Buffer): Extract<ReturnType<typeof parseJournal>, { kind: 'read' }> {
  const journal = parseJournal(bytes)
  if (journal.kind !== 'read') throw new Error(journal.reason)
  return journal
}

describe('packed operations', () => {
  it('are those that were packed, in their order, as often as they are asked for', () => {
    const packed = new PackedOperations()
    const pushed: Operation[] = []
    expect([...packed]).toEqual([])
    for (let round = 0; round < 2000; round++)
      for (const operation of OPERATIONS) {
        const named = { ...operation, path: { path: `line\nbreak-\u00e9-${round}` } }
        pushed.push(named)
        packed.push(named)
        if (round % 999 === 0) expect([...packed].length).toBe(pushed.length)
      }
    expect([...packed]).toEqual(pushed)
    expect([...packed]).toEqual(pushed)
  })
})

describe('the journal', () => {
  it('gives back what was written', () => {
    const journal = read(write().bytes())
    expect(journal.begin).toEqual(BEGIN)
    expect(journal.operations).toEqual(OPERATIONS)
    expect(stateOf(journal)).toBe('intent')
  })

  it('goes on only from where it was read to, within its reserve', () => {
    const { disk, dir, bytes } = write()
    const size = bytes().length
    for (const record of ENDINGS.slice(2)) append(disk, dir, continueJournal(read(bytes())), record)
    expect(read(bytes()).outcome.map(({ kind }) => kind)).toEqual(['stuck', 'retried'])
    expect(stateOf(read(bytes()))).toBe('intent')
    append(disk, dir, continueJournal(read(bytes())), { kind: 'done', at: 'x', warnings: [] })
    expect(stateOf(read(bytes()))).toBe('done')
    expect(bytes().length).toBe(size)
  })

  it('takes a torn last record for absent, at every length of it, and overwrites it', () => {
    const { disk, dir, bytes } = write()
    const { end, check } = read(bytes())
    const line = Buffer.from(
      encodeLine(check, { kind: 'stuck', at: 'x', reason: 'a rather long reason' }).line,
    )
    for (let length = 0; length < line.length; length++) {
      const torn = Buffer.concat([
        bytes().subarray(0, end),
        line.subarray(0, length),
        Buffer.alloc(RESERVE_BYTES - length),
      ])
      expect(stateOf(read(torn))).toBe('intent')
      expect(read(torn).end).toBe(end)
      disk.writeAt(dir, nameOf(`${C}.log`), 0, torn)
      append(disk, dir, continueJournal(read(torn)), { kind: 'done', at: 'x', warnings: [] })
      expect(stateOf(read(bytes()))).toBe('done')
      disk.writeAt(dir, nameOf(`${C}.log`), end, Buffer.alloc(RESERVE_BYTES))
    }
  })

  it('shows damage of every single byte before INTENT', () => {
    const bytes = write().bytes()
    const { end } = read(bytes)
    for (let at = 0; at < end; at++) {
      const damaged = Buffer.from(bytes)
      damaged[at] = (damaged[at] ?? 0) ^ 0x01
      expect(parseJournal(damaged).kind, `byte ${at}`).toBe('damaged')
    }
  })

  it('shows missing, repeated and swapped lines, and names the branch where it can', () => {
    const bytes = write().bytes()
    const lines = bytes.toString('utf8', 0, read(bytes).end).split('\n').slice(0, -1)
    const variants = [
      lines.slice(1),
      lines.toSpliced(2, 1),
      [...lines.slice(0, 2), ...lines.slice(1)],
      lines.slice(0, -1),
    ]
    for (const variant of variants)
      expect(parseJournal(Buffer.from(`${variant.join('\n')}\n`)).kind).toBe('damaged')
    expect(parseJournal(Buffer.from(`${lines.slice(0, 3).join('\n')}\n`))).toMatchObject({
      kind: 'damaged',
      begin: { branch: BEGIN.branch },
    })
    expect(parseJournal(Buffer.alloc(0)).kind).toBe('damaged')
  })

  it('shows damage behind INTENT that is not a torn end', () => {
    const { disk, dir, bytes } = write()
    append(disk, dir, continueJournal(read(bytes())), { kind: 'stuck', at: 'x', reason: 'r' })
    append(disk, dir, continueJournal(read(bytes())), { kind: 'retried', at: 'x' })
    const damaged = bytes()
    const at = damaged.indexOf('stuck')
    damaged[at] = 0x41
    expect(parseJournal(damaged).kind).toBe('damaged')
  })

  it('does not read what a newer version wrote', () => {
    const { line } = encodeLine(FIRST_CHECK, { ...BEGIN, version: JOURNAL_VERSION + 1 })
    expect(parseJournal(Buffer.from(line)).kind).toBe('newer')
  })
})

describe('docs/journal.md', () => {
  const text = readFileSync(new URL('../../../docs/journal.md', import.meta.url), 'utf8')
  const table = new Map(
    [...text.matchAll(/^\| `([a-z]+)` \| ([a-zA-Z, ]+) \|/gm)].map(([, kind, fields]) => [
      kind,
      fields?.split(', ') ?? [],
    ]),
  )

  it('names every record and its fields, and no other', () => {
    expect([...table.keys()]).toEqual([...RECORD_KINDS])
    for (const record of [BEGIN, ...OPERATIONS, { kind: 'intent', operations: 1 } as const, ...ENDINGS]) {
      const fields = Object.keys(record).filter((key) => key !== 'kind')
      expect(new Set(fields), record.kind).toEqual(new Set(table.get(record.kind)))
    }
  })

  it('states every invariant as a must', () => {
    for (let n = 1; n <= 7; n++) expect(text).toMatch(new RegExp(`\\*\\*J${n}\\*\\*[^*]*\\*\\*must`))
  })
})
