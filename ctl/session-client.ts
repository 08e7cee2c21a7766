import { connect, type Socket } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import type { AgentExit } from '../daemon/contract/branch.ts'
import type { SessionStreams } from '../daemon/contract/engine.ts'
import {
  type FrameKind,
  FrameReader,
  frame,
  MOST_FRAME_BYTES,
  SESSION_FRAMES,
  sizeFrame,
} from '../daemon/contract/session-frames.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'

const VERSIONS = 'Are puzzlectl and puzzled of the same version? systemctl restart puzzled'

/** This side of a session's socket: streams out of frames. A reader that is slow slows the socket down. */
export class SessionClient {
  readonly output = new PassThrough()
  readonly errors = new PassThrough()
  readonly input: Writable
  /** Rejects when the daemon goes away first, or lets go of us. */
  readonly exited: Promise<AgentExit>
  readonly #socket: Socket
  #waiting = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    this.input = new Writable({
      write: (bytes: Buffer, _encoding, done) => this.#type(bytes, done),
      final: (done) => void socket.write(frame(SESSION_FRAMES.endOfInput), () => done()),
    })
    this.exited = new Promise((resolve, reject) => this.#listen(resolve, reject))
    // Not everybody who reads along waits for the end.
    this.exited.catch(() => undefined)
  }

  /** `paced`: what runs waits for us when we are slow. */
  static open(path: string, paced: boolean): Promise<SessionClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(path)
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        if (paced) socket.write(frame(SESSION_FRAMES.pace))
        resolve(new SessionClient(socket))
      })
    })
  }

  resize(columns: number, rows: number): void {
    this.#socket.write(sizeFrame(columns, rows))
  }

  async signal(name: string): Promise<void> {
    this.#socket.write(frame(SESSION_FRAMES.signal, Buffer.from(name)))
  }

  close(): void {
    this.#socket.destroy()
  }

  #type(bytes: Buffer, done: () => void): void {
    for (let at = 0; at < bytes.length; at += MOST_FRAME_BYTES)
      this.#socket.write(frame(SESSION_FRAMES.input, bytes.subarray(at, at + MOST_FRAME_BYTES)))
    if (this.#socket.writableNeedDrain) this.#socket.once('drain', done)
    else done()
  }

  #listen(resolve: (exit: AgentExit) => void, reject: (error: Error) => void): void {
    const frames = new FrameReader()
    const take = (bytes: Buffer): void => {
      for (const one of frames.push(bytes)) {
        if (one.kind === SESSION_FRAMES.exit) resolve(JSON.parse(one.bytes.toString()) as AgentExit)
        else if (one.kind === SESSION_FRAMES.notice)
          reject(new PuzzledError('bus-gone', `The daemon let go of this session: ${one.bytes.toString()}`))
        else this.#show(one.kind, one.bytes)
      }
    }
    this.#socket.on('data', (bytes: Buffer) => {
      try {
        take(bytes)
      } catch (cause) {
        reject(
          new PuzzledError('bus-gone', 'The daemon does not speak as expected', { cause, hint: VERSIONS }),
        )
        this.#socket.destroy()
      }
    })
    this.#socket.on('error', () => this.#socket.destroy())
    this.#socket.on('close', () => {
      this.output.end()
      this.errors.end()
      this.input.destroy()
      reject(
        new PuzzledError('bus-gone', 'The daemon went away before the command had ended', {
          hint: 'What it wrote is kept; once the daemon runs again: puzzlectl ls',
        }),
      )
    })
  }

  #show(kind: FrameKind, bytes: Buffer): void {
    const stream =
      kind === SESSION_FRAMES.output ? this.output : kind === SESSION_FRAMES.errors ? this.errors : null
    if (stream === null || stream.write(Buffer.from(bytes))) return
    this.#waiting++
    this.#socket.pause()
    stream.once('drain', () => {
      if (--this.#waiting === 0) this.#socket.resume()
    })
  }
}

export const PIPES = { kind: 'pipes' } as const
export const TERMINAL = { kind: 'pty', inherit: [null, null, null] } as const

/** Descriptors that the daemon was handed have no stream here; a terminal has one for both outputs. */
export function streamsOf(
  client: SessionClient | null,
  stdio: { kind: 'pipes' | 'inherit' } | { kind: 'pty'; inherit: readonly unknown[] },
): Partial<SessionStreams> {
  if (client === null || stdio.kind === 'inherit') return {}
  if (stdio.kind === 'pipes') return { input: client.input, output: client.output, errors: client.errors }
  return { input: client.input, output: client.output }
}
