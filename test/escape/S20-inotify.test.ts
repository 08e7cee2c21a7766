import { spawnSync } from 'node:child_process'
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { PROFILE } from '../../daemon/sandbox/plan.fixture.ts'
import { requestOf } from '../root/branch.fixture.ts'
import { type Missing, needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport, startOutside } from './attack.ts'
import { branchFor, inBranch, launcher } from './harness.ts'

const INSTANCES = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'))
const reachable: Missing =
  INSTANCES < (PROFILE.rlimits.nofile ?? 0) - 16
    ? undefined
    : `needs fewer than ${INSTANCES} inotify instances`
const check = needs(root, program('gcc'), reachable)

/** What one more instance is answered with, for that user of the host. */
const askedBy = (uid: number): string | undefined => {
  const drop = uid === 0 ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  return parseReport(outside([...drop, attack('watchers'), 'once'])).inotify
}

describe('S20 every inotify instance of a user', () => {
  check('is missing to that user alone: not to root, to others, or to branches of others', async () => {
    const branch = branchFor({ owner: 1000 })
    copyFileSync(attack('watchers'), join(branch.base, 'watchers'))
    expect([0, 1000, 1001].map(askedBy)).toEqual(['OK', 'OK', 'OK'])
    const agent = await launcher.start(requestOf(branch, ['./watchers']))
    agent.errors?.resume()
    try {
      let said = ''
      for await (const part of agent.output ?? []) {
        said += String(part)
        if (said.includes('taken')) break
      }
      // The control: it did take what there was.
      const { last, taken } = parseReport(said)
      expect([last, Number(taken) > 0]).toEqual(['EMFILE', true])
      // The limit that stays (docs/threat-model.md): the kernel counts by uid, and an agent has that of its requester.
      expect([0, 1000, 1001].map(askedBy)).toEqual(['OK', 'EMFILE', 'OK'])
      const { report } = await inBranch('watchers', ['once'], { owner: 1001 })
      expect(report).toEqual({ inotify: 'OK' })
    } finally {
      await agent.kill('signal')
      await agent.exited
    }
    expect(askedBy(1000)).toBe('OK')
  })
})

const watching = needs(root, program('gcc'))

describe('S20 what an agent can watch', () => {
  /** Changes a watched file and a watched directory. */
  const change = (folder: string): void => {
    appendFileSync(join(folder, 'file'), 'more')
    writeFileSync(join(folder, 'new'), '')
  }

  watching(
    'control: outside, who watches hears of a change, and fanotify is there for everybody',
    async () => {
      const folder = mkdtempSync(join(attackFolder(), 'watched-'))
      writeFileSync(join(folder, 'file'), '')
      const { child, output, ended } = startOutside([attack('watchers'), 'see', join(folder, 'file'), folder])
      await expect.poll(output, { timeout: 60_000 }).toContain('ready')
      change(folder)
      child.stdin?.end()
      await ended
      expect(parseReport(output())).toEqual({
        ...{ 'watch-0': 'OK', 'watch-1': 'OK', fanotify: 'OK', ready: 'OK' },
        ...{ 'heard-0': 'something', 'heard-1': 'something' },
      })
    },
  )

  watching(
    'is its own copy of a base: it hears nothing of what the host does there, or elsewhere',
    async () => {
      const branch = branchFor()
      const elsewhere = mkdtempSync(join(attackFolder(), 'watched-'))
      writeFileSync(join(branch.base, 'file'), '')
      copyFileSync(attack('watchers'), join(branch.base, 'watchers'))
      const places = [join(branch.base, 'file'), branch.base, elsewhere]
      const agent = await launcher.start(requestOf(branch, ['./watchers', 'see', ...places]))
      agent.errors?.resume()
      let said = ''
      for await (const part of agent.output ?? []) {
        said += String(part)
        if (!said.endsWith('ready OK\n')) continue
        change(branch.base)
        agent.input?.end()
      }
      await agent.exited
      expect(parseReport(said)).toEqual({
        ...{ 'watch-0': 'OK', 'watch-1': 'OK', 'watch-2': 'ENOENT', fanotify: 'EPERM', ready: 'OK' },
        ...{ 'heard-0': 'nothing', 'heard-1': 'nothing', 'heard-2': 'nothing' },
      })
    },
  )
})

describe('S20 what an agent can lock', () => {
  const locking = needs(root, program('flock'))
  const SHOWN = '/usr/bin/env'
  /** Whether somebody of the host would get it at once. */
  const isFree = (path: string): boolean => spawnSync('flock', ['-n', path, 'true']).status === 0

  locking('is a file that is shown to it, as any user can; in a base it locks its own copy', async () => {
    const branch = branchFor()
    const file = join(branch.base, 'file')
    writeFileSync(file, '')
    expect([isFree(SHOWN), isFree(file)], 'before').toEqual([true, true])
    const both = ['flock', SHOWN, 'flock', file, 'sh', '-c', 'echo held; cat']
    const agent = await launcher.start(requestOf(branch, both))
    agent.errors?.resume()
    const seen: boolean[][] = []
    for await (const part of agent.output ?? []) {
      if (!String(part).includes('held')) continue
      seen.push([isFree(SHOWN), isFree(file)])
      agent.input?.end()
    }
    expect(await agent.exited).toMatchObject({ code: 0 })
    expect([...seen, [isFree(SHOWN), isFree(file)]]).toEqual([
      [false, true],
      [true, true],
    ])
  })
})
