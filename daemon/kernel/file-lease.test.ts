import { closeSync, linkSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isOpenForWriting } from './file-lease.ts'
import { O, openat, openRoot, withFd } from './paths.ts'

const dir = mkdtempSync(join(tmpdir(), 'puzzled-lease-'))
const file = join(dir, 'file')
beforeAll(() => {
  writeFileSync(file, 'x')
  linkSync(file, join(dir, 'link'))
})
afterAll(() => rmSync(dir, { recursive: true }))

const asked = (): boolean =>
  withFd(openRoot(dir), (at) => withFd(openat(at, 'file', O.RDONLY), isOpenForWriting))

it.each([
  ['nobody', undefined, false],
  ['a reader', ['file', 'r'], false],
  ['a writer', ['file', 'r+'], true],
  ['who appends', ['file', 'a'], true],
  ['a writer by another hard link', ['link', 'r+'], true],
] as const)('%s', (_, open, expected) => {
  const fd = open === undefined ? undefined : openSync(join(dir, open[0]), open[1])
  try {
    expect(asked()).toBe(expected)
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
  expect(asked()).toBe(false)
})
