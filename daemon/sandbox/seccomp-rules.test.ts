import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ARGUMENTS, ONLY_WITH } from './seccomp-arguments.ts'
import { CALLS, NEWER_CALLS, PROGRAMS } from './seccomp-calls.ts'
import { type Architecture, seccompSources, syscallTable, verdicts } from './seccomp-rules.ts'

const names = CALLS.flatMap((row) => row.calls.split(/\s+/))

/** Entry points of the running kernel that a 64-bit process cannot reach, or that have another name in the table. */
const NOT_64_BIT =
  /(_time32|32|16)$|^(ia32_|old|s390_|spu_|pciconfig_|vm86)|^(fadvise64_64|fstatfs64|gethostname|ipc|llseek|mmap_pgoff|newlstat|newstat|newuname|newfstat|ni_syscall|nice|recv|rtas|send|sendfile64|sgetmask|signal|sigpending|sigprocmask|sigsuspend|socketcall|ssetmask|statfs64|stime|subpage_prot|sync_file_range2|umount|waitpid)$/

describe.each<Architecture>(['x64', 'arm64'])('the policy for %s', (architecture) => {
  it('has a verdict for every system call of the headers and of every newer kernel', () => {
    const judged = new Set(names)
    expect(Object.keys(syscallTable(architecture)).filter((name) => !judged.has(name))).toEqual([])
  })

  it('numbers no two calls alike', () => {
    const numbers = Object.values(syscallTable(architecture))
    expect(new Set(numbers).size).toBe(numbers.length)
  })
})

describe('the policy', () => {
  it('names each call once, and none that no architecture has', () => {
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
    const known = { ...syscallTable('x64'), ...syscallTable('arm64') }
    expect(names.filter((name) => known[name] === undefined)).toEqual([])
  })

  it('says why on every line', () => {
    const reasons = [...CALLS, ...ARGUMENTS].map((row) => row.why)
    expect(reasons.filter((why) => why.length < 8)).toEqual([])
  })

  it('looks at arguments of allowed calls only', () => {
    for (const row of ARGUMENTS)
      for (const program of row.programs)
        if (!(program === 'strict' && row.call === 'unshare'))
          expect([row.call, verdicts(program).get(row.call)]).toEqual([row.call, 'allow'])
    for (const call of Object.keys(ONLY_WITH)) expect(verdicts('build').get(call)).toBe('allow')
  })

  it('gets wider from program to program, never narrower', () => {
    const strength = { allow: 0, EPERM: 1, ENOSYS: 1 }
    for (const call of names) {
      const chain = PROGRAMS.map((program) => strength[verdicts(program).get(call) ?? 'ENOSYS'])
      expect([call, chain]).toEqual([call, [...chain].sort((a, b) => b - a)])
    }
  })

  it('differs by an errno only where the fallback is not that errno', () => {
    for (const program of PROGRAMS) {
      const [calls] = seccompSources({ program, architecture: 'x64', sealMemfds: false })
      expect(calls?.fallback).toEqual({ errno: 38 })
      expect(calls?.rules.filter((rule) => JSON.stringify(rule.action) === '{"errno":38}')).toEqual([])
    }
  })
})

const symbols = existsSync('/proc/kallsyms') ? readFileSync('/proc/kallsyms', 'utf8') : ''
const entryPoints = [...symbols.matchAll(/ __(?:x64|arm64)_sys_(\w+)$/gm)].map((match) => match[1] ?? '')
const noSymbols = entryPoints.length === 0 ? 'not verified here: /proc/kallsyms shows no system calls' : ''
if (noSymbols !== '') console.warn(noSymbols)

describe('the running kernel', () => {
  it.skipIf(noSymbols !== '')('has no system call without a verdict', () => {
    const judged = new Set(names)
    const open = entryPoints.filter((name) => !judged.has(name) && !NOT_64_BIT.test(name))
    expect([...new Set(open)]).toEqual([])
    expect(entryPoints.length).toBeGreaterThan(300)
  })

  it.skipIf(noSymbols !== '')('would be noticed to have one', () => {
    expect(NOT_64_BIT.test('frobnicate')).toBe(false)
    expect(entryPoints).toContain('file_setattr' in NEWER_CALLS ? 'read' : '')
  })
})
