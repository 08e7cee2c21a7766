import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BranchSpace, type SpaceReader } from './space.ts'

let dir = ''
let space: BranchSpace
const clock = { now: 0 }
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'space-'))
  mkdirSync(join(dir, 'layers'))
  clock.now = 0
  space = new BranchSpace({ directory: () => dir }, () => clock.now)
})
afterEach(async () => {
  await space.close()
  rmSync(dir, { recursive: true, force: true })
})

const attempt = (reader: SpaceReader): unknown => {
  try {
    return reader.read().inodes
  } catch (error) {
    return error
  }
}

it('is read again when what could not be measured has become measurable', async () => {
  const deep = join(dir, 'layers', ...Array.from({ length: 1_001 }, () => 'd'))
  mkdirSync(deep, { recursive: true })
  const reader = space.readerOf('b1', { disk: 1 << 30 })
  clock.now = 1_000
  await expect.poll(() => attempt(reader)).toBeInstanceOf(Error)
  // The walk that follows fails like the one before: nothing goes on by itself.
  await expect.poll(() => attempt(reader)).toBeInstanceOf(Error)
  rmSync(join(dir, 'layers', 'd'), { recursive: true })
  mkdirSync(join(dir, 'layers', 'd'))
  await expect.poll(() => attempt(reader)).toBe(1)
})
