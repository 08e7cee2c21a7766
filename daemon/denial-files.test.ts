import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DenialFiles } from './denial-files.ts'

let room = ''
let complaints: string[] = []
let files: DenialFiles
beforeEach(() => {
  room = mkdtempSync(join(tmpdir(), 'puzzled-denials-'))
  complaints = []
  const complain = (branch: string) => (error: unknown) => void complaints.push(`${branch}: ${error}`)
  files = new DenialFiles((id) => join(room, id), complain)
  mkdirSync(join(room, 'b1'))
})
afterEach(() => rmSync(room, { recursive: true }))

const denial = (branch: string, subject: string) =>
  ({ kind: 'denial', branch, time: 't', layer: 'dns', subject, rule: 'r', message: 'm' }) as const

it('keeps what each branch was refused, in order, and only that', async () => {
  files.prepare('b1')
  for (const subject of ['a', 'b\n{"time":"forged"}']) files.take(denial('b1', subject))
  files.take({ kind: 'warning', branch: 'b1', time: 't', message: 'other' })
  expect(await files.list('b1')).toEqual([
    { time: 't', layer: 'dns', subject: 'a', rule: 'r', message: 'm' },
    { time: 't', layer: 'dns', subject: 'b\n{"time":"forged"}', rule: 'r', message: 'm' },
  ])
  expect(await files.list('b2')).toEqual([])
})

it('is bounded, says so once, and goes on where it stopped', async () => {
  const path = files.prepare('b1')
  for (let count = 0; count < 2_000; count++) files.take(denial('b1', 'x'.repeat(400)))
  const rows = await files.list('b1')
  expect(rows.at(-1)).toMatchObject({ rule: 'more', message: 'Further denials are not listed here' })
  expect(rows.filter(({ rule }) => rule === 'more')).toHaveLength(1)
  expect(statSync(path).size).toBeLessThan((256 << 10) + 200)
})

it('is read past half a line that a full disk left', async () => {
  const path = files.prepare('b1')
  writeFileSync(path, '{"time":"t","layer":"dn')
  for (const subject of ['a', 'b']) files.take(denial('b1', subject))
  expect((await files.list('b1')).map(({ subject }) => subject)).toEqual(['b'])
})

it('can be read by the agent whatever our umask is', () => {
  const before = process.umask(0o077)
  try {
    expect(statSync(files.prepare('b1')).mode & 0o777).toBe(0o644)
  } finally {
    process.umask(before)
  }
})

it('does not mind a branch that is gone', async () => {
  files.take(denial('gone', 'a'))
  expect(await files.list('gone')).toEqual([])
  expect(complaints).toEqual([])
})
