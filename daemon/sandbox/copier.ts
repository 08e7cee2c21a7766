import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { constants } from 'node:os'
import type { CarriedStream } from '../contract/engine.ts'
import type { SpawnOp } from '../contract/spawn.ts'
import { nativeFile, spawn } from '../kernel/clone.ts'
import { errnoName } from '../kernel/errno.ts'
import { pidfdGetfd, pidfdSendSignal } from '../kernel/pidfd.ts'
import { pipe } from '../kernel/pipe.ts'
import { type Stat, statIn } from '../kernel/statx.ts'
import { AT_EMPTY_PATH, CLOSE_RANGE_CLOEXEC, F_SETFD, PR_SET_PDEATHSIG } from '../kernel/uapi/index.ts'
import { PuzzledError } from '../lib/errors.ts'
import { call, cstring } from './calls.ts'
import { collect } from './collect.ts'

const { SIGKILL, SIGUSR1 } = constants.signals
const SIG_SETMASK = 2

/** A descriptor of another process, and with whose rights it is used. */
export interface Source {
  readonly pid: number
  readonly pidfd: number
  readonly fd: number
  readonly uid: number
  readonly gid: number
}

export type Side = 'input' | 'output'
/** Its number in the copier. */
const TAKEN = { input: 0, output: 1 } as const
/** Taking is a matter of a millisecond. */
const PATIENCE_MILLIS = 10_000

export interface Copier {
  /** What it has taken: type and identity do not change, times and size may be old. */
  readonly stat: Stat
  readonly stream: CarriedStream
  /** What it has taken, for this process. */
  duplicate(): number
  /** Closes our end of its pipe, and ends it where its stream was never wanted. */
  close(): void
}

/** What waits for a filesystem of its caller's stays, also after its branch: nobody fills the machine with that. */
const MOST_OF_A_USER = 1_024
const alive = new Map<number, number>()

/**
 * A process (native/copy.c) that copies between a pipe of ours and a caller's file or socket. Whoever reads, writes or
 * closes such a thing may wait for as long as the caller likes, in the kernel and beyond the reach of signals: the daemon
 * must not even have it, nor ask for it: also that can wait, for a caller who executes a program. Resolves when the process has
 * taken it; nothing is copied yet.
 */
export async function startCopier(source: Source, side: Side, most = MOST_OF_A_USER): Promise<Copier> {
  demandRoom(source, most)
  const bytes = pipe()
  const [ours, its] = side === 'input' ? [bytes.read, bytes.write] : [bytes.write, bytes.read]
  try {
    return copierOf(await start(source, side, its), side, ours)
  } catch (error) {
    closeSync(ours)
    throw error
  } finally {
    closeSync(its)
  }
}

function demandRoom({ uid }: Source, most: number): void {
  if ((alive.get(uid) ?? 0) >= most && uid !== 0)
    throw new PuzzledError('kernel-refused', `${most} files and sockets of yours are being copied already`, {
      hint: 'A filesystem that does not answer, or a reader that does not read, holds them',
    })
}

function count(uid: number, by: number): void {
  const now = (alive.get(uid) ?? 0) + by
  if (now === 0) alive.delete(uid)
  else alive.set(uid, now)
}

interface Running {
  readonly pidfd: number
  signal(number: number): void
  /** It is gone: with this errno, or by a signal (null). */
  readonly ended: Promise<number | null>
}

interface Started extends Running {
  readonly stat: Stat
}

async function start(source: Source, side: Side, its: number): Promise<Started> {
  const life = pipe()
  const spawning = spawn({ namespaces: [], ops: copyOps(source, side, its, life.write) })
  const result = await spawning
    .finally(() => closeSync(life.write))
    .catch((error: unknown) => {
      closeSync(life.read)
      throw error
    })
  const socket = new Socket({ fd: life.read, readable: true, writable: false })
  if (!result.ok) {
    socket.destroy()
    throw notCopied(`${result.op.name}: ${result.errnoName}`)
  }
  count(source.uid, 1)
  const started = watch(result.pidfd, once(socket, 'close'))
  void started.ended.then(() => count(source.uid, -1))
  // Who executes another program meanwhile can make it wait for as long as they like.
  const timer = setTimeout(() => started.signal(SIGKILL), PATIENCE_MILLIS)
  const taken = await Promise.race([once(socket, 'data'), started.ended])
  clearTimeout(timer)
  if (taken === null || typeof taken === 'number') throw notTaken(source.fd, taken)
  return { ...started, stat: statIn(taken[0] as Buffer) }
}

/** It has the last copy of the other end. What may make it wait it closes before. */
function watch(pidfd: number, closed: Promise<unknown>): Running {
  let gone = false
  const end = async (): Promise<number | null> => {
    await closed
    const { exitCode } = await collect(pidfd)
    gone = true
    closeSync(pidfd)
    return exitCode ?? null
  }
  return {
    pidfd,
    ended: end(),
    signal: (number) => {
      if (!gone) pidfdSendSignal(pidfd, number)
    },
  }
}

function copierOf({ stat, pidfd, signal, ended }: Started, side: Side, ours: number): Copier {
  let [held, wanted, stopped] = [true, false, false]
  const stop = (): void => {
    stopped = true
    signal(SIGKILL)
  }
  const stream: CarriedStream = {
    fd: ours,
    take: () => {
      held = false
      return ours
    },
    go: () => {
      wanted = true
      signal(SIGUSR1)
    },
    stop,
    ended: ended.then((errno) => {
      // Somebody else has killed it: what it had in hand is lost.
      if (errno === null) return stopped ? null : 'EIO'
      return errno === 0 ? null : errnoName(errno)
    }),
  }
  return {
    stat,
    stream,
    duplicate: () => pidfdGetfd(pidfd, TAKEN[side]),
    close: () => {
      if (held) closeSync(ours)
      if (!wanted) stop()
    },
  }
}

const notCopied = (why: string): PuzzledError =>
  new PuzzledError('kernel-refused', `Cannot copy a stream of the caller: ${why}`)

function notTaken(fd: number, errno: number | null): PuzzledError {
  if (errno === null) return notCopied('the calling process does not answer')
  const name = errnoName(errno)
  if (name === 'EBADF') return new PuzzledError('usage', `The caller has no descriptor ${fd}`)
  if (name === 'EPROTOTYPE')
    return new PuzzledError('usage', `Descriptor ${fd} is a socket of datagrams, or one that listens`, {
      hint: 'Put a pipe in between: puzzlectl … | cat',
    })
  return name === 'EACCES' || name === 'ESRCH' || name === 'ENOENT' ? anotherOne() : notCopied(name)
}

/** Also where a caller has become a program with more rights than its own. */
const anotherOne = (): PuzzledError =>
  new PuzzledError(
    'access-denied',
    'The calling process is gone, is another one now, or has more rights than its user',
  )

let program: number | undefined

/** Opened once: an upgrade may replace it. */
const copyProgram = (): number => {
  program ??= openSync(nativeFile('copy'), 'r')
  return program
}

/** Signals stay blocked in the program, so that one which comes early waits. */
function copyOps(source: Source, side: Side, its: number, life: number): SpawnOp[] {
  const words = [source.pid, source.pidfd, source.fd, TAKEN[side], source.uid, source.gid]
  return [
    call('set the end of the pipe', 'dup3', its, 1 - TAKEN[side], 0),
    call('set the descriptor that tells of its end', 'dup3', life, 2, 0),
    call('close every other descriptor on exec', 'close_range', 3, 0xffffffff, CLOSE_RANGE_CLOEXEC),
    call('keep the pidfd of the caller', 'fcntl', source.pidfd, F_SETFD, 0),
    call('block all signals', 'rt_sigprocmask', SIG_SETMASK, Buffer.alloc(8, 0xff), null, 8),
    call('end with the daemon', 'prctl', PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0),
    call(
      'execute the copier',
      'execveat',
      copyProgram(),
      cstring(''),
      { vector: ['puzzled-copy', ...words.map(String)].map(cstring) },
      { vector: [] },
      AT_EMPTY_PATH,
    ),
  ]
}
