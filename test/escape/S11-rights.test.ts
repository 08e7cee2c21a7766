import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport } from './attack.ts'
import { branchFor, inBranch } from './harness.ts'

const runnable = root ?? program('gcc')
const check = needs(runnable)

/** What an agent gets that asks an allowed call for more than it has; the same for every user without a right. */
const ASKED = {
  'unlock-securebits': 'EPERM',
  'drop-from-bounding': 'EPERM',
  priority: 'EACCES',
  realtime: 'EPERM',
  'round-robin': 'EPERM',
  deadline: 'EPERM',
  'io-realtime': 'EPERM',
  'mark-packets': 'EPERM',
  'transparent-proxy': 'EPERM',
  'force-buffer': 'EPERM',
  'leave-device': 'EPERM',
  'give-away': 'EPERM',
  'netlink-audit': 'EPROTONOSUPPORT',
  'netlink-uevent': 'EPROTONOSUPPORT',
  'netlink-generic': 'EPROTONOSUPPORT',
  'netlink-sockets': 'EPROTONOSUPPORT',
  trim: 'ENOTTY',
}

describe('S11 allowed calls that are asked for more', () => {
  check('control: outside, root is refused none of it for want of a right', () => {
    const folder = attackFolder()
    const program = attack('rights')
    const report = parseReport(outside([program, '/usr/bin/env', '/usr/bin/env'], { cwd: folder }))
    expect(Object.keys(report)).toEqual([...Object.keys(ASKED), 'link-to-setuid', 'link-to-system'])
    const refused = Object.entries(report).filter(([, result]) => result !== 'OK')
    // Discarding blocks of no file is looked at and found wrong. Some kernels have no real-time groups.
    const other = refused.filter(
      ([name]) => !['trim', 'realtime', 'round-robin', 'deadline'].includes(name) && !name.startsWith('link'),
    )
    expect(other).toEqual([])
    expect(report.trim).not.toBe('EPERM')
  })

  check('in a branch every one is refused, and no setuid program gets another name', async () => {
    const branch = branchFor()
    const setuid = join(branch.base, 'setuid-id')
    copyFileSync('/usr/bin/id', setuid)
    chownSync(setuid, 0, 0)
    chmodSync(setuid, 0o4755)
    const { report } = await inBranch('rights', [setuid, '/usr/bin/env'], { reuse: branch })
    // What lies beside the base is another mount; what is root's in it is another user's (fs.protected_hardlinks).
    expect(report).toEqual({ ...ASKED, 'link-to-setuid': 'EPERM', 'link-to-system': 'EXDEV' })
    expect(readdirSync(branch.upper).filter((name) => name.startsWith('linked'))).toEqual([])
  })
})

const KEY = '1886747188'
const NAME = '/puzzled-object'
const OBJECTS = [
  'memory-by-key',
  'memory-by-number',
  'semaphores-by-key',
  'semaphores-by-number',
  'messages-by-key',
  'messages-by-number',
  'queue-by-name',
  'shared-file-by-name',
]
const MISSING = {
  'memory-by-key': 'ENOENT',
  'memory-by-number': 'EINVAL',
  'semaphores-by-key': 'ENOENT',
  'semaphores-by-number': 'EINVAL',
  'messages-by-key': 'ENOENT',
  'messages-by-number': 'EINVAL',
  'queue-by-name': 'ENOENT',
  'shared-file-by-name': 'ENOENT',
}

describe('S11 objects of the kernel that anybody may use', () => {
  let owner: ChildProcess | undefined
  let numbers = ''

  beforeAll(async () => {
    if (runnable !== undefined) return
    owner = spawn(attack('objects'), ['make', KEY, NAME], { stdio: ['pipe', 'pipe', 'inherit'] })
    let said = ''
    while (!said.includes('ready')) {
      const [chunk] = await once(owner.stdout ?? owner, 'data')
      said += chunk
    }
    const made = parseReport(said)
    expect(made.ready).toBe('yes')
    numbers = made.numbers ?? ''
  })
  afterAll(async () => {
    if (owner === undefined) return
    const gone = once(owner, 'close')
    owner.stdin?.end()
    await gone
  })

  check('control: outside, another user reaches all of them', () => {
    const ids = ['--reuid=1000', '--regid=1000', '--clear-groups']
    const text = execFileSync('setpriv', [...ids, attack('objects'), 'use', KEY, NAME, numbers], {
      encoding: 'utf8',
    })
    expect(parseReport(text)).toEqual(Object.fromEntries(OBJECTS.map((name) => [name, 'OK'])))
  })

  check('in a branch there is none, by key, by number or by name', async () => {
    const { report } = await inBranch('objects', ['use', KEY, NAME, numbers])
    expect(report).toEqual(MISSING)
  })

  check('under strict there are no such calls', async () => {
    const { report } = await inBranch('objects', ['use', KEY, NAME, numbers], {
      profile: { seccomp: 'strict' },
    })
    const none = Object.fromEntries(OBJECTS.map((name) => [name, 'ENOSYS']))
    expect(report).toEqual({ ...none, 'shared-file-by-name': 'ENOENT' })
  })
})
