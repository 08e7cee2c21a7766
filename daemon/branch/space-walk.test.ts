import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { close, mkdirat, O, openat, openRoot } from '../kernel/paths.ts'
import { measureTree } from './space-walk.ts'

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'space-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }), 120_000)
const at = (...names: string[]): string => join(dir, ...names)

describe('a tree is measured', () => {
  it('by blocks, so that holes are free', () => {
    writeFileSync(at('full'), Buffer.alloc(1 << 20, 1))
    const { bytes } = measureTree(dir)
    expect(bytes).toBeGreaterThanOrEqual(1 << 20)
    writeFileSync(at('sparse'), '')
    truncateSync(at('sparse'), 2 ** 40)
    expect(measureTree(dir).bytes - bytes).toBeLessThan(1 << 20)
  })

  it('with each inode once, at every depth', () => {
    mkdirSync(at('a', 'b'), { recursive: true })
    writeFileSync(at('a', 'b', 'file'), 'x')
    linkSync(at('a', 'b', 'file'), at('second'))
    expect(measureTree(dir).inodes).toBe(3)
  })

  it('however many are in one directory', () => {
    for (let n = 0; n < 3_000; n++) writeFileSync(at(`${n}`.padStart(200, 'x')), '')
    expect(measureTree(dir).inodes).toBe(3_000)
  })

  it('without following a symbolic link out of it', () => {
    symlinkSync('/usr', at('usr'))
    symlinkSync('.', at('itself'))
    expect(measureTree(dir).inodes).toBe(2)
  })

  it('or refused where it is too deep to be measured', () => {
    const levels = [openRoot(dir)]
    try {
      for (let depth = 0; depth < 1_001; depth++) {
        const below = levels.at(-1) ?? -1
        mkdirat(below, 'd', 0o700)
        levels.push(openat(below, 'd', O.RDONLY | O.DIRECTORY))
        if (depth === 500) expect(measureTree(dir).inodes).toBe(501)
      }
    } finally {
      for (const level of levels) close(level)
    }
    expect(() => measureTree(dir)).toThrow('directories deep')
  })
})
