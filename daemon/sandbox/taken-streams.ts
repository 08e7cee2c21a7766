import { closeSync } from 'node:fs'
import type { SessionStdio, Stream, TakenStreams } from '../contract/engine.ts'
import { pidfdOpen } from '../kernel/pidfd.ts'
import { isNamelessPipe } from '../kernel/pipe.ts'
import { isCharacterDevice, isFifo, isFile, isSocket, type Stat } from '../kernel/statx.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type Copier, startCopier } from './copier.ts'

export interface StreamsCaller {
  readonly pid: number
  readonly uid: number
  readonly gid: number
}

/**
 * The streams of another process for what is started for it. A copier takes each of them, and keeps it where it is anything but a
 * pipe without a name or a device: of these, which only the kernel has a say in, this process has its own.
 */
export async function takeStreams(caller: StreamsCaller, stdio: SessionStdio): Promise<TakenStreams> {
  const wanted = wantedOf(stdio)
  if (wanted.every((fd) => fd === null)) return { stdio, close: () => undefined }
  const copiers = await copiersFor(caller, wanted)
  const ours = new OwnStreams()
  try {
    const streams = copiers.map((copier, index) =>
      copier === null ? null : ours.of(copier, wanted[index] ?? -1, index === 0 ? 'input' : 'output'),
    )
    return { stdio: withStreams(stdio, streams), close: () => ours.close(copiers) }
  } catch (error) {
    ours.close(copiers)
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

/** All of them, or none. The process is held by a pidfd meanwhile, so that its number cannot become another's. */
async function copiersFor(
  caller: StreamsCaller,
  wanted: readonly (number | null)[],
): Promise<(Copier | null)[]> {
  const pidfd = pidfdOpen(caller.pid)
  try {
    const begun = await Promise.allSettled(
      wanted.map(async (fd, index) =>
        fd === null ? null : await startCopier({ ...caller, pidfd, fd }, index === 0 ? 'input' : 'output'),
      ),
    )
    const failed = begun.find((one) => one.status === 'rejected')
    const copiers = begun.map((one) => (one.status === 'fulfilled' ? one.value : null))
    if (failed === undefined) return copiers
    for (const copier of copiers) copier?.close()
    throw failed.reason
  } finally {
    closeSync(pidfd)
  }
}

/** What this process has of them. */
class OwnStreams {
  readonly #duplicates: number[] = []
  readonly #carried = new Map<string, Stream>()

  /** What the caller made one stream (`2>&1`) stays one: the order of what is written to it must not change. */
  of(copier: Copier, fd: number, side: string): Stream {
    const { stat, stream } = copier
    if (isQuick(stat)) {
      const ours = copier.duplicate()
      this.#duplicates.push(ours)
      return ours
    }
    if (!isFile(stat) && !isSocket(stat) && !isFifo(stat))
      throw new PuzzledError('usage', `Descriptor ${fd} is neither a file, a pipe nor a socket`)
    const file = `${side} ${stat.dev}:${stat.ino}`
    const known = this.#carried.get(file) ?? stream
    this.#carried.set(file, known)
    return known
  }

  /** Copiers that nobody wanted end with it. */
  close(copiers: readonly (Copier | null)[]): void {
    for (const fd of this.#duplicates) closeSync(fd)
    for (const copier of copiers) copier?.close()
  }
}

/** Nobody but the kernel has a say in how long reading, writing and closing it takes. */
const isQuick = (stat: Stat): boolean => isCharacterDevice(stat) || isNamelessPipe(stat)
