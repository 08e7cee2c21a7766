import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { PROFILE } from '../../daemon/sandbox/plan.fixture.ts'
import { requestOf } from '../root/branch.fixture.ts'
import { type Missing, needs, program, root } from '../tier/needs.ts'
import { attack, outside, parseReport } from './attack.ts'
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
