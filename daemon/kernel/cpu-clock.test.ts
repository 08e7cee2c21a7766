import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CpuClock } from './cpu-clock.ts'

/** Longer than one answer is good for all. */
const LATER_MILLIS = 20
let above: string
const used = (path: string, micros: number): void =>
  writeFileSync(join(path, 'cpu.stat'), `usage_usec ${micros}\nuser_usec 0\n`)
const branch = (name: string): string => join(above, name)

beforeEach(() => {
  above = mkdtempSync(join(tmpdir(), 'clock-'))
  for (const name of ['one', 'two']) mkdirSync(branch(name))
  for (const path of [above, branch('one'), branch('two')]) used(path, 0)
})
afterEach(() => rmSync(above, { recursive: true, force: true }))

describe('the processor’s clock of a cgroup', () => {
  it('is read again only when the cgroup of all has used something', async () => {
    const clocks = ['one', 'two'].map((name) => new CpuClock(branch(name), above))
    const read = async (): Promise<number[]> => {
      await sleep(LATER_MILLIS)
      return clocks.map((clock) => clock.read())
    }
    expect(await read()).toEqual([0, 0])
    // The kernel never does this: it shows that the file was not looked at.
    used(branch('one'), 5)
    expect(await read()).toEqual([0, 0])
    used(above, 5)
    expect(await read()).toEqual([5, 0])
    used(branch('two'), 7)
    used(above, 12)
    expect(await read()).toEqual([5, 7])
    for (const clock of clocks) clock.close()
    expect(clocks.map((clock) => clock.read())).toEqual([5, 7])
  })

  it('is read each time where the cgroup of all cannot be', async () => {
    const clock = new CpuClock(branch('one'), join(above, 'missing'))
    for (const micros of [1, 2, 3]) {
      used(branch('one'), micros)
      await sleep(LATER_MILLIS)
      expect(clock.read()).toBe(micros)
    }
    clock.close()
    clock.close()
  })

  it('is its own where there is none above', () => {
    const clock = new CpuClock(branch('one'))
    used(branch('one'), 3)
    expect(clock.read()).toBe(3)
    clock.close()
  })
})
