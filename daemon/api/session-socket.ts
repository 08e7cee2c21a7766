import { chmod, chown, mkdir, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import type { SessionStreams } from '../contract/engine.ts'
import { type Frame, type FrameKind, FrameReader, frame, SESSION_FRAMES } from '../contract/session-frames.ts'
import { refuseDescriptors } from '../kernel/refuse-descriptors.ts'

/** What a late reader still gets to see; enough to redraw a screen. */
const BACKLOG_BYTES = 64 << 10
/** What a reader that is not waited for may be behind. */
const LATE_BYTES = 1 << 20
const MOST_READERS = 32
const DROPPED_MILLIS = 5_000
/** A caller that has been told of its socket comes at once; one that does not has gone. */
const CALLER_MILLIS = 10_000

export interface Offered {
  readonly session: SessionStreams
  /** uid that may open the socket, besides root. */
  readonly owner: number
  /**
   * For a command that belongs to one caller: it is told of signals, and `abandoned` when that caller has gone.
   */
  readonly command?: { signal(name: string): Promise<void>; abandoned(): Promise<void> }
  /** Whoever this refuses is cut off. What runs in a branch has the uid of the one on whose behalf it runs. */
  readonly admits: (socket: Socket) => Promise<boolean>
  /** A failure that nobody waits for. */
  readonly report: (error: unknown) => void
}

interface Reader {
  readonly socket: Socket
  /** The agent waits for this one. */
  paced: boolean
}

/**
 * A unix socket in front of one agent or command: what it prints goes to everybody who is connected, what anybody types
 * goes to it. Only the owner of the branch (and root) can open it. Nobody who merely looks on can hold an agent up. The
 * output, and the end, wait a while for the caller who was told of the socket: it may all be over before that one comes.
 */
export class SessionSocket {
  readonly path: string
  /** Nobody can come any more. */
  readonly over: Promise<void>
  readonly #offered: Offered
  readonly #server: Server
  readonly #readers = new Set<Reader>()
  readonly #slow = new Set<Reader>()
  #backlog: Buffer[] = []
  #backlogBytes = 0
  #ended = false
  #met = false
  #flowing = false
  /** Somebody came, or is not expected any more. */
  readonly #arrival = deferred()
  readonly #over = deferred()
  #wait: NodeJS.Timeout | undefined

  private constructor(path: string, offered: Offered) {
    this.path = path
    this.over = this.#over.promise
    this.#offered = offered
    this.#server = createServer((socket) => this.#meet(socket))
  }

  static async open(path: string, offered: Offered): Promise<SessionSocket> {
    const directory = join(path, '..')
    await mkdir(directory, { recursive: true, mode: 0o711 })
    await rm(path, { force: true })
    const socket = new SessionSocket(path, offered)
    await new Promise<void>((resolve, reject) => {
      socket.#server.once('error', reject)
      socket.#server.listen(path, resolve)
      // It listens from here on, and nobody can open it yet.
      refuseDescriptors(socket.#server)
    })
    await chmod(path, 0o600)
    await chown(path, offered.owner, -1 >>> 0)
    socket.#begin()
    return socket
  }

  /** At the end of the daemon: nobody is waited for. */
  async close(): Promise<void> {
    clearTimeout(this.#wait)
    this.#arrival.resolve()
    this.#server.close()
    for (const { socket } of this.#readers) socket.destroy()
    await rm(this.path, { force: true })
    this.#over.resolve()
  }

  get #streams(): readonly (readonly [FrameKind, NodeJS.ReadableStream])[] {
    const { output, errors } = this.#offered.session
    return [
      ...(output === undefined ? [] : [[SESSION_FRAMES.output, output] as const]),
      ...(errors === undefined ? [] : [[SESSION_FRAMES.errors, errors] as const]),
    ]
  }

  #begin(): void {
    const { session, report } = this.#offered
    const ends = this.#streams.map(([, stream]) => ended(stream))
    Promise.all([session.exited, ...ends])
      .then(
        ([exit]) => this.#finish(frame(SESSION_FRAMES.exit, Buffer.from(JSON.stringify(exit)))),
        async (error: unknown) => {
          report(error)
          await this.#finish(notice('Its end could not be put on record'))
        },
      )
      .catch(report)
    // A program that ends before it has read everything is no failure of ours.
    session.input?.on('error', () => undefined)
    this.#wait = setTimeout(() => this.#expectNobody(), CALLER_MILLIS)
  }

  /** From here on what is printed is taken, and sent to whoever is there. */
  #flow(): void {
    if (this.#flowing) return
    this.#flowing = true
    for (const [kind, stream] of this.#streams)
      stream.on('data', (bytes: Buffer) => this.#send(frame(kind, bytes)))
  }

  /** Nothing is read and nothing sent before it is known who that is. */
  #meet(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    this.#offered.admits(socket).then(
      (admitted) => (admitted ? this.#admit(socket) : socket.destroy()),
      (error: unknown) => {
        socket.destroy()
        this.#offered.report(error)
      },
    )
  }

  #admit(socket: Socket): void {
    const { command } = this.#offered
    if (
      socket.destroyed ||
      this.#ended ||
      this.#readers.size >= MOST_READERS ||
      (command !== undefined && this.#met)
    ) {
      socket.destroy()
      return
    }
    // Who comes first is the caller. What waited for that one must not overrun them.
    const reader: Reader = { socket, paced: !this.#flowing }
    this.#readers.add(reader)
    const frames = new FrameReader()
    socket.on('data', (bytes: Buffer) => {
      try {
        for (const one of frames.push(bytes)) this.#take(reader, one)
      } catch {
        socket.destroy()
      }
    })
    socket.on('drain', () => this.#caughtUp(reader))
    socket.on('close', () => this.#leave(reader))
    for (const bytes of this.#backlog) socket.write(bytes)
    clearTimeout(this.#wait)
    this.#flow()
    this.#met = true
    this.#arrival.resolve()
  }

  #take(reader: Reader, { kind, bytes }: Frame): void {
    const { session, command, report } = this.#offered
    if (kind === SESSION_FRAMES.input) this.#type(reader, bytes)
    else if (kind === SESSION_FRAMES.endOfInput) session.input?.end()
    else if (kind === SESSION_FRAMES.pace) reader.paced = true
    else if (kind === SESSION_FRAMES.signal) command?.signal(bytes.toString('latin1')).catch(report)
    else if (
      kind === SESSION_FRAMES.size &&
      bytes.length === 4 &&
      bytes.readUInt16BE(0) * bytes.readUInt16BE(2) > 0
    )
      session.resize(bytes.readUInt16BE(0), bytes.readUInt16BE(2))
  }

  /** Who types faster than the program reads is not read from either. */
  #type({ socket }: Reader, bytes: Buffer): void {
    const input = this.#offered.session.input as (NodeJS.WritableStream & { destroyed?: boolean }) | undefined
    if (input === undefined || !input.writable || input.write(bytes)) return
    socket.pause()
    const resume = (): void => {
      input.removeListener('drain', resume)
      input.removeListener('close', resume)
      socket.resume()
    }
    input.on('drain', resume)
    input.on('close', resume)
  }

  #send(bytes: Buffer): void {
    this.#backlog.push(bytes)
    this.#backlogBytes += bytes.length
    while (this.#backlogBytes > BACKLOG_BYTES && this.#backlog.length > 1)
      this.#backlogBytes -= this.#backlog.shift()?.length ?? 0
    for (const reader of this.#readers) {
      const { socket, paced } = reader
      const fast = socket.write(bytes)
      if (paced && !fast) this.#hold(reader)
      else if (!paced && socket.writableLength > LATE_BYTES) this.#drop(reader)
    }
  }

  #hold(reader: Reader): void {
    this.#slow.add(reader)
    for (const [, stream] of this.#streams) stream.pause()
  }

  #caughtUp(reader: Reader): void {
    if (this.#slow.delete(reader) && this.#slow.size === 0)
      for (const [, stream] of this.#streams) stream.resume()
  }

  #drop(reader: Reader): void {
    this.#readers.delete(reader)
    reader.socket.end(notice('Detached: too far behind'))
    // One that does not even read this keeps its backlog no longer.
    setTimeout(() => reader.socket.destroy(), DROPPED_MILLIS).unref()
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader)
    this.#caughtUp(reader)
    if (this.#offered.command !== undefined) this.#abandon()
  }

  /** A command is nobody's then; an agent goes on, and what it prints is kept for whoever comes later. */
  #expectNobody(): void {
    if (this.#offered.command !== undefined) this.#abandon()
    else {
      this.#arrival.resolve()
      this.#flow()
    }
  }

  /** Its caller has gone: what it still prints is read by nobody, and it is ended. */
  #abandon(): void {
    if (this.#ended) return
    const { command, report } = this.#offered
    this.#arrival.resolve()
    for (const [, stream] of this.#streams) stream.resume()
    command?.abandoned().catch(report)
  }

  /** Readers get all that is left, then the exit; nobody new is let in. A caller who is still on the way is waited for. */
  async #finish(last: Buffer): Promise<void> {
    if (!this.#met) await this.#arrival.promise
    this.#ended = true
    clearTimeout(this.#wait)
    this.#server.close()
    for (const { socket } of this.#readers) socket.end(last)
    await rm(this.path, { force: true })
    this.#over.resolve()
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

const notice = (text: string): Buffer => frame(SESSION_FRAMES.notice, Buffer.from(text))

/** Also of a stream that has ended before anybody asked. An error is an end like any other. */
const ended = (stream: NodeJS.ReadableStream): Promise<void> =>
  finished(stream, { writable: false }).catch(() => undefined)
