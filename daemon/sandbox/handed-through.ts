import { closeSync, createReadStream, createWriteStream, fstatSync, readlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { LostStream } from '../contract/branch.ts'
import type { CarriedStream, Stream } from '../contract/engine.ts'
import { duplicate, pipe } from '../kernel/pipe.ts'
import { isByteStream } from '../kernel/socket-kind.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'

/** Is told of what an agent writes, as it passes; must not wait. */
export type OutputObserver = (stream: 'stdout' | 'stderr', bytes: Buffer) => void

/**
 * A caller's descriptors for an agent. Whoever holds an open file of the host can change its mode, times, attributes and
 * length without having a path to it, and whoever holds a socket can connect it again from the host's network. So an
 * agent gets the end of a pipe, and what it says is copied. Only two kinds are handed over as they are: character devices
 * (`/dev/null`; a terminal is the caller's decision) and, for input, pipes without a name.
 * Output is copied in any case: the caller's own program may have made a shared pipe non-blocking, and few agents
 * can write to one.
 */
export interface HandedThrough {
  readonly child: readonly number[]
  /** The child's ends, to be closed once the child has them. */
  readonly childEnds: readonly number[]
  /** Ours, until `copy`. */
  readonly ours: readonly number[]
  copy(): Copied
}

/** What is being copied between an agent and its caller. */
export interface Copied {
  /** Settles when all output has arrived, or cannot. */
  readonly drained: Promise<void>
  /** The caller's side failed: a full disk, a descriptor that is not open for this. A reader that went away is no failure. */
  readonly lost: readonly LostStream[]
  /** The first program runs: it may have the caller's input. */
  begin(): void
  /** Reads no more of the caller's input. */
  end(): void
}

/** Null stays null. Nothing is copied before the child runs; of what is handed over as it is, `observe` sees nothing. */
export function handThrough(
  streams: readonly (Stream | null)[],
  observe: OutputObserver = () => undefined,
): HandedThrough {
  const links: Link[] = []
  const byFile = new Map<string, number>()
  const ours = (): number[] => links.flatMap(({ from, to }) => [from, to])
  try {
    const child = streams.map((stream, index) => {
      if (stream === null) return -1
      const fd = typeof stream === 'number' ? stream : stream.fd
      if (isHarmless(fd, index)) return fd
      // What the caller made one stream (`2>&1`) stays one: the order of what is written to it must not change.
      const file = `${index === 0 ? 'input' : 'output'} ${identity(fd)}`
      const known = byFile.get(file)
      if (known !== undefined) return known
      const link = linkTo(fd, index, typeof stream === 'number' ? null : stream)
      links.push(link)
      byFile.set(file, link.childEnd)
      return link.childEnd
    })
    return {
      child,
      childEnds: links.map(({ childEnd }) => childEnd),
      ours: ours(),
      copy: () => copyAll(links, inputOf(streams), observe),
    }
  } catch (error) {
    for (const fd of [...ours(), ...links.map(({ childEnd }) => childEnd)]) closeSync(fd)
    throw error
  }
}

interface Link {
  readonly stream: LostStream['stream']
  readonly from: number
  readonly to: number
  readonly childEnd: number
  /** Who copies on from where it goes. */
  readonly carried: CarriedStream | null
}

function isHarmless(fd: number, index: number): boolean {
  if (fstatSync(fd).isCharacterDevice()) return true
  return index === 0 && readlinkSync(`/proc/self/fd/${fd}`).startsWith('pipe:[')
}

function identity(fd: number): string {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return `${dev}:${ino}`
}

function linkTo(fd: number, index: number, carried: CarriedStream | null): Link {
  const stat = fstatSync(fd)
  const known = stat.isFile() || stat.isSocket() || stat.isFIFO()
  if (!known) throw new PuzzledError('usage', `Descriptor ${index} is neither a file, a pipe nor a socket`)
  // Found out only when the agent runs, nobody would hold that.
  if (stat.isSocket() && !isByteStream(fd))
    throw new PuzzledError('usage', `Descriptor ${index} is a socket of datagrams, or one that listens`, {
      hint: 'Put a pipe in between: puzzlectl … | cat',
    })
  const { read, write } = pipe()
  const theirs = carried?.take() ?? duplicate(fd)
  return index === 0
    ? { stream: 'stdin', from: theirs, to: write, childEnd: read, carried }
    : { stream: index === 1 ? 'stdout' : 'stderr', from: read, to: theirs, childEnd: write, carried }
}

/** What a copier feeds is a pipe, which the agent has itself. */
const inputOf = ([input]: readonly (Stream | null)[]): CarriedStream | null =>
  input === undefined || typeof input === 'number' ? null : input

function copyAll(links: readonly Link[], input: CarriedStream | null, observe: OutputObserver): Copied {
  const lost: LostStream[] = []
  const lose = (stream: LostStream['stream'], errno: string | null): void => {
    if (errno !== null && !GONE.has(errno)) lost.push({ stream, errno })
  }
  const beyond = async (stream: LostStream['stream'], carried: CarriedStream | null): Promise<void> => {
    carried?.go()
    lose(stream, (await carried?.ended) ?? null)
  }
  const copies = links.map(({ stream, from, to, carried }) => {
    const [source, target] = [reader(from), writer(to)]
    if (stream !== 'stdin') source.on('data', (bytes: Buffer) => observe(stream, bytes))
    const callers = stream === 'stdin' ? source : target
    callers.once('error', (error) => lose(stream, errnoOf(error) ?? 'EIO'))
    const copy = copyOne(source, target)
    if (stream !== 'stdin') copy.begin()
    return { stream, ...copy, arrived: beyond(stream, carried) }
  })
  const outputs = copies.filter(({ stream }) => stream !== 'stdin')
  return {
    drained: Promise.all(outputs.flatMap(({ done, arrived }) => [done, arrived])).then(() => undefined),
    lost,
    begin: () => {
      for (const { stream, begin } of copies) if (stream === 'stdin') begin()
      void beyond('stdin', input)
    },
    end: () => {
      for (const { stream, stop } of copies) if (stream === 'stdin') stop()
      input?.stop()
    },
  }
}

/** The other end of a pipe or a connection was closed, by somebody who had seen enough. */
const GONE: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET'])

const reader = (fd: number): Readable =>
  fstatSync(fd).isFile() ? createReadStream('', { fd }) : new Socket({ fd, readable: true, writable: false })

/** Without a position: the offset is the caller's, who may append or write to the same file. */
const writer = (fd: number): Writable =>
  fstatSync(fd).isFile() ? createWriteStream('', { fd }) : new Socket({ fd, readable: false, writable: true })

/** Either side's failure ends both: a writer whose reader has gone shall get its SIGPIPE. */
function copyOne(from: Readable, to: Writable): { done: Promise<void>; begin(): void; stop(): void } {
  const stop = (): void => {
    from.destroy()
    to.destroy()
  }
  from.on('error', stop)
  to.on('error', stop)
  to.on('close', () => from.destroy())
  from.on('end', () => finish(to))
  const done = finished(to).then(
    () => undefined,
    () => undefined,
  )
  return { done, begin: () => void from.pipe(to, { end: false }), stop }
}

/** `end` would shut a socket down for all who hold it, and the caller has more to say: it is closed, once all is written. */
function finish(to: Writable): void {
  if (to instanceof Socket) to.write('', () => to.destroy())
  else to.end()
}
