import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { HeldDescriptors } from './held-descriptors.ts'
import { emptyTrash } from './trash.ts'

let trash = ''
beforeEach(() => {
  trash = mkdtempSync(join(tmpdir(), 'trash-'))
})
afterEach(() => rmSync(trash, { recursive: true, force: true }))

function discard(branch: string): void {
  const upper = join(trash, branch, 'layers/001/0/upper')
  mkdirSync(join(upper, 'deep/deeper'), { recursive: true })
  for (const name of ['a', 'deep/b', 'deep/deeper/c']) writeFileSync(join(upper, name), name)
}

const openHere = (): string[] =>
  readdirSync('/proc/self/fd')
    .map(targetOf)
    .filter((target) => target.startsWith(trash))

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return 'closed meanwhile'
  }
}

it('ends at whatever name it is told to, with nothing open, and goes on the next time', () => {
  const held = new HeldDescriptors()
  let interrupted = 0
  for (let names = 0; ; names++) {
    for (const branch of ['one', 'two']) discard(branch)
    let left = names
    const { branches } = emptyTrash(trash, held, () => left-- === 0)
    expect(openHere()).toEqual([])
    expect(held.takeAll()).toEqual([])
    if (readdirSync(trash).length === 0) {
      expect(branches).toBe(2)
      break
    }
    interrupted++
    emptyTrash(trash, held)
    expect(readdirSync(trash)).toEqual([])
  }
  // The control: there were many places.
  expect(interrupted).toBeGreaterThan(20)
})
