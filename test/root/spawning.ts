import { closeSync, readFileSync, readSync } from 'node:fs'
import {
  INIT_RECORD_BYTES,
  INIT_RECORDS,
  type SpawnOp,
  type SpawnRequest,
} from '../../daemon/contract/spawn.ts'
import { spawn } from '../../daemon/kernel/clone.ts'
import { syscall } from '../../daemon/kernel/ffi.ts'
import { initExecutable } from '../../daemon/kernel/init-program.ts'
import { type ProcessEnd, waitPidfd } from '../../daemon/kernel/pidfd.ts'
import { AT_EMPTY_PATH, MS_PRIVATE, MS_REC, NR, O_CLOEXEC } from '../../daemon/kernel/uapi/index.ts'

/** Short words for the tests of the trampoline. */

export const ALL_NAMESPACES: SpawnRequest['namespaces'] = [
  'NEWNS',
  'NEWPID',
  'NEWNET',
  'NEWIPC',
  'NEWUTS',
  'NEWCGROUP',
]

export const op = (call: string, args: SpawnOp['args']): SpawnOp => ({ name: call, call, args, expect: 'ok' })

const text = (value: string): Buffer => Buffer.from(`${value}\0`)

/** The last entry: execve with an environment that has a PATH only. */
export function execute(...argv: readonly [string, ...string[]]): SpawnOp {
  const environment = { vector: [text('PATH=/usr/bin:/bin')] }
  return op('execve', [text(argv[0]), { vector: argv.map(text) }, environment])
}

export function pipe(): { read: number; write: number } {
  const ends = Buffer.alloc(8)
  // SAFETY: two ints are written into the eight bytes.
  syscall('pipe2', NR.pipe2, ends, O_CLOEXEC)
  return { read: ends.readInt32LE(0), write: ends.readInt32LE(4) }
}

/** Everything until the last writer is gone, and the end of the pipe closed. */
export function readAll(descriptor: number): string {
  const content = readFileSync(descriptor, 'utf8')
  closeSync(descriptor)
  return content
}

/** Waits on this thread for a child that ends by itself, and closes its pidfd. */
export function endOf(pidfd: number): ProcessEnd {
  const end = waitPidfd(pidfd, { block: true })
  closeSync(pidfd)
  if (end === undefined) throw new Error('The child has not ended')
  return end
}

/** A running init: its pidfd, and the end of the pipe from which its records are read. */
export interface StartedInit {
  readonly pid: number
  readonly pidfd: number
  readonly status: number
}

export interface InitOptions {
  readonly namespaces?: SpawnRequest['namespaces']
  readonly flags?: string
  readonly environment?: readonly string[]
  /** What the child does before it becomes init. */
  readonly before?: readonly SpawnOp[]
}

const STATUS = 100

/** Starts native/init.c as PID 1 of a namespace, with a proc of its own, and has it run `argv`. */
export async function startInit(argv: readonly string[], options: InitOptions = {}): Promise<StartedInit> {
  const { read, write } = pipe()
  const namespaces = options.namespaces ?? ['NEWNS', 'NEWPID']
  const proc = [
    op('mount', [null, text('/'), null, MS_REC | MS_PRIVATE, null]),
    op('mount', [text('proc'), text('/proc'), text('proc'), 0, null]),
  ]
  const words = ['puzzled-init', String(STATUS), options.flags ?? '-', ...argv]
  const environment = options.environment ?? ['PATH=/usr/bin:/bin']
  const result = await spawn({
    namespaces,
    ops: [
      ...(namespaces.includes('NEWPID') ? proc : []),
      ...(options.before ?? []),
      op('dup3', [write, STATUS, 0]),
      op('execveat', [
        initExecutable(),
        text(''),
        { vector: words.map(text) },
        { vector: environment.map(text) },
        AT_EMPTY_PATH,
      ]),
    ],
  })
  closeSync(write)
  if (!result.ok) throw new Error(`${result.op.name}: ${result.errnoName}`)
  return { pid: result.pid, pidfd: result.pidfd, status: read }
}

/** The next record of init, as [kind, value]. Blocks this thread. */
export function nextRecord(status: number): readonly [string, number] {
  const bytes = Buffer.alloc(INIT_RECORD_BYTES)
  if (readSync(status, bytes) !== INIT_RECORD_BYTES) throw new Error('init ended without a record')
  const kind = Object.entries(INIT_RECORDS).find(([, number]) => number === bytes.readUInt32LE(0))
  return [kind?.[0] ?? 'unknown', bytes.readInt32LE(4)]
}

/** All records until init is gone, and init collected. */
export function finish(init: StartedInit): { records: Record<string, number>; end: ProcessEnd } {
  const content = readFileSync(init.status)
  closeSync(init.status)
  const records: Record<string, number> = {}
  for (let at = 0; at < content.length; at += INIT_RECORD_BYTES) {
    const kind = Object.entries(INIT_RECORDS).find(([, number]) => number === content.readUInt32LE(at))
    records[kind?.[0] ?? 'unknown'] = content.readInt32LE(at + 4)
  }
  return { records, end: endOf(init.pidfd) }
}
