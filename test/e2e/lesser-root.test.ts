import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import type { DoctorReport } from '../../daemon/contract/doctor.ts'
import { needs, program, root } from '../tier/needs.ts'
import { type Workplace, workplace } from './cli.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))

let here: Workplace
beforeEach(() => {
  here = workplace()
})
afterEach(() => here.remove())

function as(prefix: readonly string[], verb: string, ...rest: readonly string[]) {
  const argv = [...prefix, process.execPath, puzzlectl, verb, '--state-dir', here.state, ...rest]
  const { status, stdout, stderr } = spawnSync('env', argv, { cwd: here.project, encoding: 'utf8' })
  return { status, out: stdout, err: stderr }
}

const LESSER: readonly (readonly [what: string, prefix: readonly string[], sentence: string])[] = [
  ['without a capability', ['setpriv', '--bounding-set=-sys_admin'], 'without CAP_SYS_ADMIN'],
  ['in a container', ['setpriv', '--bounding-set=-sys_admin,-net_admin'], 'CAP_NET_ADMIN, CAP_SYS_ADMIN'],
  ['of a user namespace', ['unshare', '--user', '--map-root-user'], 'Root of a user namespace is not root'],
]

describe.each(LESSER)('a root %s', (_what, prefix, sentence) => {
  const test = needs(root, program('setpriv'), program('unshare'))

  test('starts no agent, is told why and what helps, and leaves nothing', () => {
    const { status, err } = as(prefix, 'run', '--', 'true')
    expect(err).toContain(sentence)
    expect(err).toContain('\n  hint: ')
    expect(err).not.toContain('internal error')
    expect(status).toBe(77)
    expect(existsSync(here.state)).toBe(false)
  })

  test('hears the same from the doctor', () => {
    const report = as(prefix, 'doctor', '--json')
    const { host, ready } = JSON.parse(report.out) as DoctorReport
    expect(host.problem).toMatchObject({ code: 'not-root', message: expect.stringContaining(sentence) })
    expect([ready, report.status]).toEqual([false, 77])
  })
})
