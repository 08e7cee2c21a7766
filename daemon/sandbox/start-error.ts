// pure
import type { ErrorCode } from '../contract/errors.ts'
import type { SpawnOp } from '../contract/spawn.ts'
import { PuzzledError } from '../lib/errors.ts'

export interface FailedStep {
  readonly index: number
  readonly total: number
  readonly op: Pick<SpawnOp, 'name' | 'call'>
  readonly errnoName: string
}

interface Known {
  readonly when: (step: FailedStep) => boolean
  readonly code: ErrorCode
  readonly hint: string
}

/** What is known about the reason of a failed step, most special first. */
const KNOWN: readonly Known[] = [
  {
    when: (step) => step.op.call === 'execveat' && step.errnoName === 'E2BIG',
    code: 'too-large',
    hint: 'The arguments and the environment together are larger than the kernel allows (`getconf ARG_MAX`)',
  },
  {
    when: (step) => step.op.name.startsWith('open the base') && step.errnoName === 'EACCES',
    code: 'access-denied',
    hint: 'The requester cannot reach this base themselves; branch a directory that they can read',
  },
  {
    when: (step) =>
      step.op.name.startsWith('open the base') && ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(step.errnoName),
    code: 'base-invalid',
    hint: 'The base is gone, or a symbolic link took the place of one of its directories',
  },
  {
    when: (step) => step.op.call === 'chdir' && step.errnoName === 'ENOENT',
    code: 'start-failed',
    hint: 'The working directory must lie in a base; give another one with --cwd',
  },
  {
    when: (step) => step.op.call === 'chdir' && step.errnoName === 'EACCES',
    code: 'start-failed',
    hint: 'The agent’s user may not enter the working directory',
  },
  {
    when: (step) => step.op.name.startsWith('create the overlay') && step.errnoName === 'EINVAL',
    code: 'start-failed',
    hint: 'The filesystem of the base or of the store cannot be a layer; `puzzlectl doctor` says which',
  },
  {
    when: (step) => step.op.name.startsWith('create the overlay') && step.errnoName === 'ENODEV',
    code: 'feature-missing',
    hint: 'modprobe overlay',
  },
  {
    when: (step) => step.op.name.startsWith('map the owners'),
    code: 'feature-missing',
    hint: 'This filesystem has no ID-mapped mounts: run as the owner of the base, or give the base another owner',
  },
  {
    when: (step) => step.op.name === 'let its clocks begin at 0' && step.errnoName === 'EPERM',
    code: 'feature-missing',
    hint: 'namespaces.time of the profile needs CAP_SYS_TIME; for the unit: systemctl edit puzzled, [Service], CapabilityBoundingSet=CAP_SYS_TIME',
  },
  {
    when: (step) => step.op.call === 'execveat' && step.errnoName === 'EAGAIN',
    code: 'start-failed',
    hint: 'The profile’s rlimits.nproc is reached already: it counts all processes of the agent’s user',
  },
  {
    when: (step) => step.errnoName === 'EMFILE',
    code: 'start-failed',
    hint: 'The profile’s rlimits.nofile is lower than this start needs: allow some hundred',
  },
  {
    when: (step) => step.op.name.startsWith('try to '),
    code: 'start-failed',
    hint: 'A lock that should hold does not: the agent was not started. `puzzlectl doctor` looks at each',
  },
  {
    when: (step) => step.errnoName.startsWith('SIG'),
    code: 'start-failed',
    hint: 'Something outside killed the start; with a low memory limit, the kernel did',
  },
]

/** `Cannot start agent: step 14 of 180, create the overlay on "/home/u/app": EINVAL`, with what is known about it. */
export function startError(step: FailedStep): PuzzledError {
  const known = KNOWN.find((entry) => entry.when(step))
  const result = step.errnoName === 'success' ? 'it succeeded and must not' : step.errnoName
  return new PuzzledError(
    known?.code ?? 'start-failed',
    `Cannot start agent: step ${step.index + 1} of ${step.total}, ${step.op.name}: ${result}`,
    {
      ...(known === undefined ? {} : { hint: known.hint }),
      data: {
        step: step.index + 1,
        of: step.total,
        name: step.op.name,
        call: step.op.call,
        errno: step.errnoName,
      },
    },
  )
}

/** The command is as it should be, and a limit leaves it no room. */
const TOO_LOW: Readonly<Record<string, { what: string; hint: string }>> = {
  EAGAIN: {
    what: 'no process may be added',
    hint: 'Raise the budget pids, or the profile’s rlimits.nproc, which counts all processes of the agent’s user',
  },
  ENOMEM: { what: 'there is no memory for it', hint: 'Raise the budget memory' },
  EMFILE: { what: 'it may open no more files', hint: 'Raise the profile’s rlimits.nofile' },
}

const NOT_EXECUTABLE: Readonly<Record<string, string>> = {
  EACCES: 'It is not executable, or the profile does not allow to run it',
  ENOEXEC: 'It is a program for another processor, or a part of one: `file` says which',
}

/** As a shell would say it: 127 when there is nothing, 126 when it cannot be executed. */
export function commandError(command: string, errnoName: string): PuzzledError {
  const shown = JSON.stringify(command)
  if (errnoName === 'ENOENT')
    return new PuzzledError('command-not-found', `Cannot run ${shown}: not found in the branch`, {
      hint: 'The command, or the interpreter in its first line, is not in the branch or not in its PATH',
      data: { command, errno: errnoName },
    })
  const limit = TOO_LOW[errnoName]
  if (limit !== undefined)
    return new PuzzledError('start-failed', `Cannot run ${shown}: ${errnoName}, ${limit.what}`, {
      hint: limit.hint,
      data: { command, errno: errnoName },
    })
  return new PuzzledError('command-not-executable', `Cannot run ${shown}: ${errnoName}`, {
    ...(NOT_EXECUTABLE[errnoName] === undefined ? {} : { hint: NOT_EXECUTABLE[errnoName] }),
    data: { command, errno: errnoName },
  })
}

/** What can be refused before anything is done. */
export function checkCommand(argv: readonly string[], environment: Readonly<Record<string, string>>): void {
  if (argv.length === 0 || argv[0] === '')
    throw new PuzzledError('usage', 'No command to run was given', { hint: 'puzzlectl run -- COMMAND' })
  const argument = argv.findIndex((value) => value.includes('\0'))
  if (argument >= 0)
    throw new PuzzledError('usage', `Argument ${argument} of the command contains a NUL byte`)
  for (const [name, value] of Object.entries(environment)) {
    if (name === '' || name.includes('=') || name.includes('\0'))
      throw new PuzzledError('usage', `${JSON.stringify(name)} cannot be the name of an environment variable`)
    if (value.includes('\0'))
      throw new PuzzledError('usage', `The environment variable ${name} contains a NUL byte`)
  }
}

/** The agent must start where the branch is: elsewhere its relative paths would mean something else than it believes. */
export function checkDirectory(cwd: string, layers: readonly { readonly base: string }[]): void {
  const inside = layers.some(({ base }) => cwd === base || cwd.startsWith(`${base}/`))
  if (inside && !cwd.includes('\0') && !cwd.split('/').includes('..')) return
  throw new PuzzledError(
    'usage',
    `The working directory ${JSON.stringify(cwd)} is not in a base of the branch`,
    { hint: `Start in ${layers.map(({ base }) => base).join(' or ')}` },
  )
}
