import { spawnSync } from 'node:child_process'
import { appendFileSync, chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { type Workplace, workplace } from './cli.ts'
import { ownEtc } from './own-etc.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const test = needs(root)

let here: Workplace
let machinesEtc: () => void
beforeEach(() => {
  machinesEtc = ownEtc()
  here = workplace()
  chmodSync(dirname(here.project), 0o755)
})
afterEach(() => {
  here.remove()
  machinesEtc()
})

const UID = 4242
const account = (home: string): void =>
  appendFileSync('/etc/passwd', `service:x:${UID}:${UID}::${home}:/usr/sbin/nologin\n`)

const LOOK = 'echo "$HOME"; cd && touch mine && pwd; ls /usr/sbin /usr/games | wc -l'

/** Where its home is, that it can write there, and how many programs of the system it sees. */
async function look(): Promise<string[]> {
  const { status, out, err } = await here.asUser(UID, 'run', '--', 'sh', '-c', LOOK)
  expect(status, err).toBe(0)
  return out.trim().split('\n')
}

describe('a requester whose account has an odd home', () => {
  const programs = (): string =>
    spawnSync('sh', ['-c', 'ls /usr/sbin /usr/games | wc -l'], { encoding: 'utf8' }).stdout.trim()

  for (const home of ['/', '/dev', '/usr/sbin', '/bin', '/var/run/service', 'service', ''])
    test(`"${home}" gets one of its own, and sees what is there`, async () => {
      account(home)
      expect(await look()).toEqual(['/home/agent', '/home/agent', programs()])
    })

  test('with a slash at its end has that home', async () => {
    account('/srv/service/')
    expect(await look()).toEqual(['/srv/service', '/srv/service', programs()])
  })
})

describe('a caller of sudo who is nobody', () => {
  const call = (env: Record<string, string>) =>
    spawnSync(process.execPath, [puzzlectl, 'run', '--state-dir', here.state, '--', 'id'], {
      cwd: here.project,
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', ...env },
    })

  test('is refused: a number that no user has, and none at all', () => {
    for (const uid of ['4294967295', '5000000000', '-1', 'x', '']) {
      const { status, stderr } = call({ SUDO_UID: uid, SUDO_GID: '1', SUDO_USER: 'x' })
      expect(stderr).toMatch(/SUDO_UID is .*: no user\n {2}hint: /)
      expect(status).toBe(2)
    }
    expect(call({ SUDO_UID: '1000' }).stderr).toContain('SUDO_GID is not set: no group')
    expect(call({ SUDO_UID: '4294967294', SUDO_GID: '4294967294' })).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^uid=4294967294/),
    })
  })

  needs(root, program('prlimit'))('with too few files is told how to have more', () => {
    const argv = ['--nofile=64', process.execPath, puzzlectl, 'run', '--state-dir', here.state, '--', 'id']
    const { status, stderr } = spawnSync('prlimit', argv, { cwd: here.project, encoding: 'utf8' })
    expect(stderr).toContain('Branches need more open files than the 64 of this process\n  hint: ulimit -n')
    expect(status).toBe(71)
  })
})
