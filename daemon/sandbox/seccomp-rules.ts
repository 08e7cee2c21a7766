// pure
import type { Condition, FilterAction, FilterRule, FilterSource } from '../kernel/seccomp-filter.ts'
import { ARM64_SYSCALLS, X64_SYSCALLS } from '../kernel/uapi/syscalls.ts'
import { ARGUMENTS, type ArgumentRow, ONLY_WITH, SEALED_MEMFD } from './seccomp-arguments.ts'
import {
  CALLS,
  type CallVerdict,
  NEWER_CALLS,
  NEWER_X64_CALLS,
  PROGRAMS,
  type SeccompProgram,
} from './seccomp-calls.ts'
import { workerSource } from './worker-calls.ts'

export type Architecture = 'x64' | 'arm64'

export interface SeccompOptions {
  readonly program: SeccompProgram
  readonly architecture: Architecture
  /** The profile lists what may be executed: anonymous files must be sealed against execution. */
  readonly sealMemfds: boolean
}

/** Generic Linux numbers; x86-64 and arm64 agree on all of these. */
const ERRNO = {
  nothing: 0,
  EPERM: 1,
  ENOSYS: 38,
  ENOPROTOOPT: 92,
  EPROTONOSUPPORT: 93,
  EAFNOSUPPORT: 97,
} as const

const errno = (name: keyof typeof ERRNO): FilterAction => ({ errno: ERRNO[name] })

/** Every system call by name, including those that are newer than the headers. */
export function syscallTable(architecture: Architecture): Readonly<Record<string, number>> {
  return architecture === 'x64'
    ? { ...X64_SYSCALLS, ...NEWER_X64_CALLS, ...NEWER_CALLS }
    : { ...ARM64_SYSCALLS, ...NEWER_CALLS }
}

/** The verdict on every name of the table above, before arguments are looked at. */
export function verdicts(program: SeccompProgram): ReadonlyMap<string, CallVerdict> {
  return new Map(
    CALLS.flatMap((row) =>
      row.calls.split(/\s+/).map((call) => {
        const verdict = typeof row.verdict === 'string' ? row.verdict : row.verdict[program]
        return [call, verdict] as const
      }),
    ),
  )
}

/**
 * Two filters, because one can only say "these values and nothing else" *or* "all but these values". The first is the
 * allow list of system calls, the second looks at arguments of what the first allows. The stricter answer counts. The
 * third repeats those refusals that no honest program runs into, and says them aloud: of equal answers, that of the filter
 * that was installed last is the one that the kernel acts on.
 */
export function seccompSources(options: SeccompOptions): readonly FilterSource[] {
  const table = syscallTable(options.architecture)
  const numbered = (call: string, action: FilterAction, when: readonly Condition[] = []): FilterRule[] => {
    const number = table[call]
    return number === undefined ? [] : [{ number, action, when }]
  }
  const calls = [...verdicts(options.program)].flatMap(([call, verdict]): FilterRule[] => {
    const values = ONLY_WITH[call]?.[options.program]
    if (verdict === 'ENOSYS') return []
    if (verdict === 'EPERM') return numbered(call, errno('EPERM'))
    if (values === undefined) return numbered(call, 'allow')
    return values.flatMap((value) => numbered(call, 'allow', [{ arg: 0, op: 'low', value }]))
  })
  const rows: ArgumentRow[] = ARGUMENTS.filter((row) => row.programs.includes(options.program))
  if (options.sealMemfds) rows.push(SEALED_MEMFD)
  return [
    { name: `${options.program}: system calls`, fallback: errno('ENOSYS'), rules: calls },
    {
      name: `${options.program}: arguments${options.sealMemfds ? ', sealed memfds' : ''}`,
      fallback: 'allow',
      rules: rows.flatMap((row) => numbered(row.call, errno(row.errno), row.when)),
    },
    {
      name: `${options.program}: told refusals${options.sealMemfds ? ', sealed memfds' : ''}`,
      fallback: 'allow',
      rules: [
        ...calls.filter(({ action }) => isForbidden(action)),
        ...rows
          .filter((row) => row.errno === 'EPERM')
          .flatMap((row) => numbered(row.call, errno('EPERM'), row.when)),
      ],
      logged: true,
    },
  ]
}

/** Everything else is an answer that programs expect: an older kernel, a family that is not there. */
const isForbidden = (action: FilterAction): boolean =>
  typeof action === 'object' && action.errno === ERRNO.EPERM

/** Why a call was refused with EPERM, in the words of the policy; its arguments are not known any more. */
export function refusalReasons(program: SeccompProgram, number: number, architecture: Architecture): Refused {
  const table = syscallTable(architecture)
  const call = Object.keys(table).find((name) => table[name] === number) ?? `system call ${number}`
  const rows = ARGUMENTS.filter(
    (row) => row.call === call && row.errno === 'EPERM' && row.programs.includes(program),
  )
  const forbidden = CALLS.find((row) => row.calls.split(/\s+/).includes(call))
  const isCall = verdicts(program).get(call) === 'EPERM'
  const whys = isCall && forbidden !== undefined ? [forbidden.why] : rows.map(({ why }) => why)
  return { call, why: [...new Set(whys)].slice(0, MOST_REASONS).join('; or ') }
}

export interface Refused {
  readonly call: string
  readonly why: string
}

const MOST_REASONS = 3

/** Asks the daemon before every program that is started: the counter of the `exec` budget. */
export function execNotifySource(architecture: Architecture): FilterSource {
  const table = syscallTable(architecture)
  return {
    name: 'count executed programs',
    fallback: 'allow',
    rules: ['execve', 'execveat'].flatMap((call) => {
      const number = table[call]
      return number === undefined ? [] : [{ number, action: 'notify' as const, when: [] }]
    }),
  }
}

/** Everything that can be asked for on this architecture; what `seccomp-compiled.ts` holds for x86-64. */
export function allSources(architecture: Architecture): readonly FilterSource[] {
  const options = PROGRAMS.flatMap((program) =>
    [false, true].map((sealMemfds) => ({ program, architecture, sealMemfds })),
  )
  const byName = new Map(options.flatMap(seccompSources).map((source) => [source.name, source]))
  return [...byName.values(), execNotifySource(architecture), workerSource(syscallTable(architecture))]
}
