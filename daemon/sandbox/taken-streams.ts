import { closeSync, readFileSync, statSync } from 'node:fs'
import type { SessionStdio, Stream, TakenStreams } from '../contract/engine.ts'
import { pidfdGetfd, pidfdOpen } from '../kernel/pidfd.ts'
import { isNamelessPipe } from '../kernel/pipe.ts'
import {
  isCharacterDevice,
  isFifo,
  isFile,
  isSocket,
  type Stat,
  statKnownFd,
  statKnownOf,
} from '../kernel/statx.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { anotherOne, type Copier, type Side, startCopier } from './copier.ts'
import { lateClose } from './late-close.ts'

export interface StreamsCaller {
  readonly pid: number
  readonly uid: number
  readonly gid: number
}

/**
 * The streams of another process for what is started for it. The process is held by a pidfd while they are taken, so that its
 * number cannot become another's. Only pipes without a name and devices are taken into this process.
 */
export async function takeStreams(caller: StreamsCaller, stdio: SessionStdio): Promise<TakenStreams> {
  const wanted = wantedOf(stdio)
  if (wanted.every((fd) => fd === null)) return { stdio, close: () => undefined }
  lateClose.demandRoom()
  const taking = new Taking(caller)
  try {
    const streams: (Stream | null)[] = []
    for (const [index, fd] of wanted.entries())
      streams.push(fd === null ? null : await taking.stream(fd, index))
    return { stdio: withStreams(stdio, streams), close: () => taking.close() }
  } catch (error) {
    taking.close()
    throw error
  }
}

/** By their place: input, output, errors. */
function wantedOf(stdio: SessionStdio): (number | null)[] {
  const streams = stdio.kind === 'inherit' ? stdio.fds : stdio.kind === 'pty' ? stdio.inherit : []
  return streams.map((stream) => (typeof stream === 'number' ? stream : null))
}

function withStreams(stdio: SessionStdio, streams: readonly (Stream | null)[]): SessionStdio {
  const [input = null, output = null, errors = null] = streams
  if (stdio.kind === 'inherit') return { kind: 'inherit', fds: [input ?? -1, output ?? -1, errors ?? -1] }
  return stdio.kind === 'pty' ? { ...stdio, inherit: [input, output, errors] } : stdio
}

class Taking {
  readonly #caller: StreamsCaller
  readonly #pidfd: number
  readonly #taken = new Map<string, number>()
  readonly #copiers = new Map<string, Copier>()

  constructor(caller: StreamsCaller) {
    this.#caller = caller
    this.#pidfd = unlessGone(() => pidfdOpen(caller.pid))
  }

  async stream(fd: number, index: number): Promise<Stream> {
    const side = index === 0 ? 'input' : 'output'
    const stat = this.#look(fd)
    if (stat === null) return await this.#carried(fd, side, `${side} ${servedFile(this.#caller.pid, fd)}`)
    if (isQuick(stat)) return this.#quick(fd)
    if (!isFile(stat) && !isSocket(stat) && !isFifo(stat))
      throw new PuzzledError('usage', `Descriptor ${fd} is neither a file, a pipe nor a socket`)
    return await this.#carried(fd, side, `${side} ${stat.dev}:${stat.ino}`)
  }

  close(): void {
    lateClose.close(this.#taken.values())
    for (const copier of this.#copiers.values()) copier.close()
    closeSync(this.#pidfd)
  }

  #quick(fd: number): number {
    const known = this.#taken.get(String(fd))
    if (known !== undefined) return known
    const ours = this.#duplicate(fd)
    if (!isQuick(statKnownFd(ours)))
      throw new PuzzledError('usage', `Descriptor ${fd} became another one meanwhile`)
    return ours
  }

  /** Null: a file of which its server tells nobody but its own user. */
  #look(fd: number): Stat | null {
    try {
      const stat = statKnownOf(this.#caller.pid, fd)
      if (stat === undefined) throw noDescriptor(fd)
      return stat
    } catch (error) {
      if (errnoOf(error) === 'EACCES') return null
      throw error
    }
  }

  /**
   * A caller that became a program with more rights than its own would show us that program's descriptors. It cannot be that
   * and be itself again between two looks that follow each other at once.
   */
  #duplicate(fd: number): number {
    demandOwner(this.#caller)
    const ours = this.#getDescriptor(fd)
    this.#taken.set(String(fd), ours)
    demandOwner(this.#caller)
    return ours
  }

  #getDescriptor(fd: number): number {
    try {
      return pidfdGetfd(this.#pidfd, fd)
    } catch (error) {
      throw errnoOf(error) === 'EBADF' ? noDescriptor(fd) : error
    }
  }

  /** What the caller made one stream (`2>&1`) stays one: the order of what is written to it must not change. */
  async #carried(fd: number, side: Side, file: string): Promise<Stream> {
    const source = { ...this.#caller, pidfd: this.#pidfd, fd }
    const copier = this.#copiers.get(file) ?? (await startCopier(source, side))
    this.#copiers.set(file, copier)
    return copier.stream
  }
}

/** Nobody but the kernel has a say in how long reading, writing and closing it takes. */
const isQuick = (stat: Stat): boolean => isCharacterDevice(stat) || isNamelessPipe(stat)

const noDescriptor = (fd: number): PuzzledError =>
  new PuzzledError('usage', `The caller has no descriptor ${fd}`)

/** The owner of what only the process itself may look into is root where the program has more rights than its user. */
function demandOwner({ pid, uid, gid }: StreamsCaller): void {
  const owner = unlessGone(() => statSync(`/proc/${pid}/fd`))
  if (owner.uid !== uid || owner.gid !== gid) throw anotherOne()
}

function unlessGone<Result>(look: () => Result): Result {
  try {
    return look()
  } catch (error) {
    throw ['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '') ? anotherOne() : error
  }
}

/** Which file it is, as the process has opened it. */
function servedFile(pid: number, fd: number): string {
  const text = unlessGone(() => readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))
  return text
    .split('\n')
    .filter((line) => /^(mnt_id|ino):/.test(line))
    .join(' ')
}
