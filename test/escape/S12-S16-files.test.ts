import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport } from './attack.ts'
import { branchFor, commandIn, inBranch } from './harness.ts'

const check = needs(root, program('gcc'), program('python3'))

describe('S12 settings of the host', () => {
  const SETTINGS = [
    '/proc/sys/kernel/core_pattern',
    '/proc/sys/kernel/modprobe',
    '/proc/sys/kernel/hostname',
    '/proc/sys/vm/overcommit_memory',
    '/proc/sys/fs/binfmt_misc/register',
    '/proc/sysrq-trigger',
    '/proc/kcore',
    '/proc/kallsyms',
    '/sys/kernel/uevent_helper',
    '/sys/kernel/mm/transparent_hugepage/enabled',
    '/sys/fs/cgroup/cgroup.procs',
    '/sys/fs/cgroup/release_agent',
    '/dev/mem',
    '/dev/kmsg',
    '/dev/vda',
    '/dev/fuse',
    '/dev/net/tun',
    '/dev/kvm',
    '/etc/passwd',
    '/etc/ld.so.preload',
    '/usr/bin/env',
  ]

  check('control: outside, root opens them for writing', () => {
    const report = parseReport(outside([attack('probe'), 'write', ...SETTINGS]))
    const open = SETTINGS.filter((path) => report[path] === 'OK')
    expect(open).toEqual(
      expect.arrayContaining(['/proc/sys/kernel/core_pattern', '/dev/kmsg', '/usr/bin/env']),
    )
  })

  check('in a branch none can be opened for writing', async () => {
    const { report } = await inBranch('probe', ['write', ...SETTINGS])
    const answer = (path: string): string =>
      /^\/(sys|dev)\//.test(path) || !existsSync(path) ? 'ENOENT' : 'EACCES'
    expect(report).toEqual(Object.fromEntries(SETTINGS.map((path) => [path, answer(path)])))
  })

  check('the limit that keeps core handlers of the host from running cannot be changed', async () => {
    const branch = branchFor()
    const line = "grep core /proc/self/limits | tr -s ' '"
    const set =
      'python3 -c "import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))"'
    const ran = await commandIn(branch, [
      'sh',
      '-ec',
      `${line}; ulimit -c 0; ${line}; prlimit --core=0:0 --pid $$; ${line}; ${set}`,
    ])
    const kept = 'Max core file size 1 1 bytes \n'
    expect(ran.output).toBe(`${kept}${kept}${kept}(1, 1)\n`)
    // The control: outside, each of them sets it.
    expect(outside(['sh', '-ec', `ulimit -c 0; ${line}; ${set}`])).toBe(
      'Max core file size 0 0 bytes \n(0, 0)\n',
    )
  })

  check('a crash leaves no core file', async () => {
    const branch = branchFor()
    const ran = await commandIn(branch, ['sh', '-c', 'ulimit -c; ulimit -Hc; kill -SEGV $$'])
    expect(ran.output).toBe('0\n0\n')
    expect(ran.exit.signal).toBe('SIGSEGV')
    expect(readdirSync(branch.upper)).toEqual([])
  })
})

describe('what proc tells about the host', () => {
  const TOLD = [
    'buddyinfo',
    'cmdline',
    'config.gz',
    'diskstats',
    'interrupts',
    'locks',
    'mdstat',
    'modules',
    'partitions',
    'pressure',
    'schedstat',
    'softirqs',
    'zoneinfo',
  ]
    .map((name) => `/proc/${name}`)
    .filter((path) => existsSync(path))
  const ASKED = ['cpuinfo', 'meminfo', 'stat', 'loadavg', 'uptime', 'version'].map((name) => `/proc/${name}`)
  const all = (paths: readonly string[], answer: string) =>
    Object.fromEntries(paths.map((path) => [path, answer]))

  check('control: outside, anybody reads it', () => {
    const report = parseReport(outside([attack('probe'), 'read', ...TOLD], { asNobody: true }))
    expect(report).toEqual(all(TOLD, 'OK'))
    expect(TOLD.length).toBeGreaterThan(5)
  })

  check('in a branch nobody does, and what programs ask about the machine stays', async () => {
    const { report } = await inBranch('probe', ['read', ...TOLD, ...ASKED])
    expect(report).toEqual({ ...all(TOLD, 'EACCES'), ...all(ASKED, 'OK') })
  })
})

describe('S13 the layers', () => {
  check('the layers exist outside, and no visible path leads to them', async () => {
    const branch = branchFor()
    const ways = (path: string) => [
      path,
      ...['/proc/1/root', '/proc/self/root', '/proc/self/cwd/../../../../..'].map((from) => from + path),
    ]
    const paths = [branch.mounts[0]?.upper ?? '', branch.mounts[0]?.work ?? ''].flatMap(ways)
    expect(parseReport(outside([attack('probe'), 'stat', paths[0] ?? '']))).toEqual({
      [paths[0] ?? '']: 'OK',
    })
    const { report } = await inBranch('probe', ['stat', ...paths], { reuse: branch })
    expect(report).toEqual(
      Object.fromEntries(paths.map((path) => [path, path.startsWith('/proc/1/') ? report[path] : 'ENOENT'])),
    )
    for (const result of Object.values(report)) expect(result).toMatch(/^(ENOENT|EACCES)$/)
    const { output } = await commandIn(branch, [
      'cat',
      '/proc/self/mountinfo',
      '/proc/self/mounts',
      '/proc/self/mountstats',
    ])
    expect(output).toContain(branch.base)
    expect(output).not.toContain(join(branch.base, '..', 'store'))
  })
})

describe('S16 setuid programs', () => {
  check('control: outside, nobody becomes root by one', () => {
    const copy = join(attackFolder(), 'setuid-id')
    copyFileSync('/usr/bin/id', copy)
    chmodSync(copy, 0o4755)
    expect(outside([copy, '-u'], { asNobody: true })).toBe('0\n')
  })

  check(
    'in a branch it stays who it is, whether it lies in the base, in the system or is its own',
    async () => {
      const branch = branchFor()
      copyFileSync('/usr/bin/id', join(branch.base, 'setuid-id'))
      chmodSync(join(branch.base, 'setuid-id'), 0o4755)
      const script =
        './setuid-id -u; cp /usr/bin/id own; chmod 6755 own; ./own -u; su -c id 2>/dev/null; echo $?'
      const ran = await commandIn(branch, ['sh', '-c', script])
      expect(ran.output.split('\n').slice(0, 2)).toEqual(['1000', '1000'])
      expect(ran.output.trim().split('\n').at(-1)).not.toBe('0')
      expect(existsSync(join(branch.base, 'own'))).toBe(false)
      const mode = execFileSync('stat', ['-c', '%a %u', join(branch.upper, 'own')], { encoding: 'utf8' })
      expect(mode).toBe('6755 1000\n')
    },
  )
})
