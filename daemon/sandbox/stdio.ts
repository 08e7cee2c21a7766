import { closeSync } from 'node:fs'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { ReadStream } from 'node:tty'
import type { Stream } from '../contract/engine.ts'
import { pipe } from '../kernel/pipe.ts'
import { openTerminal, resizeTerminal } from '../kernel/pty.ts'
import { errnoOf } from '../lib/errors.ts'
import { type Copied, handThrough, type OutputObserver } from './handed-through.ts'

/** How an agent's descriptors 0 to 2 are made; the contract's `SessionStdio`. */
export type StdioRequest =
  | {
      readonly kind: 'pty'
      readonly columns: number
      readonly rows: number
      readonly inherit?: readonly [Stream | null, Stream | null, Stream | null]
    }
  | { readonly kind: 'inherit'; readonly fds: readonly [Stream, Stream, Stream] }
  | { readonly kind: 'pipes' }

/** The daemon's ends. */
export interface StdioStreams {
  input?: NodeJS.WritableStream
  output?: NodeJS.ReadableStream
  errors?: NodeJS.ReadableStream
  resize?: (columns: number, rows: number) => void
  /** What is copied between the agent and its caller's descriptors. */
  copied?: Copied
}

export interface Stdio {
  /** Descriptors that the child puts in place of 0 to 2. */
  readonly child: readonly [number, number, number]
  /** Descriptor 0 becomes the agent's controlling terminal. */
  readonly terminal: boolean
  /** After the child has them, the daemon must not keep them: readers would never see the end. */
  closeChildEnds(): void
  /** Wraps the daemon's ends. Called once, when the child runs. */
  streams(): StdioStreams
  /** When nothing was started: everything is closed. */
  abandon(): void
}

/**
 * Makes the descriptors of a start; a terminal is opened in the agent's own devpts (`terminals`). Whoever calls this must
 * call `closeChildEnds` and `streams`, or `abandon`.
 */
export function openStdio(
  request: StdioRequest,
  terminals: number,
  owner: { uid: number; gid: number },
  observe?: OutputObserver,
): Stdio {
  const parts =
    request.kind === 'pty' ? ptyParts(request, terminals, owner, observe) : plainParts(request, observe)
  let childEnds = parts.childEnds
  let ours = parts.ours
  const closeChildEnds = (): void => {
    for (const end of childEnds) closeSync(end)
    childEnds = []
  }
  return {
    child: parts.child,
    terminal: parts.terminal,
    closeChildEnds,
    streams: () => {
      ours = []
      return parts.streams()
    },
    abandon: () => {
      closeChildEnds()
      for (const end of ours) closeSync(end)
      ours = []
    },
  }
}

interface Parts {
  child: [number, number, number]
  terminal: boolean
  childEnds: number[]
  ours: number[]
  streams(): StdioStreams
}

function plainParts(request: Exclude<StdioRequest, { kind: 'pty' }>, observe?: OutputObserver): Parts {
  if (request.kind === 'inherit') {
    const { child, childEnds, ours, copy } = handThrough(request.fds, observe)
    const [input = -1, output = -1, errors = -1] = child
    const streams = (): StdioStreams => ({ copied: copy() })
    return {
      child: [input, output, errors],
      terminal: false,
      childEnds: [...childEnds],
      ours: [...ours],
      streams,
    }
  }
  const [input, output, errors] = [pipe(), pipe(), pipe()]
  return {
    child: [input.read, output.write, errors.write],
    terminal: false,
    childEnds: [input.read, output.write, errors.write],
    ours: [input.write, output.read, errors.read],
    streams: () => ({
      input: writer(input.write),
      output: new Socket({ fd: output.read, readable: true, writable: false }),
      errors: new Socket({ fd: errors.read, readable: true, writable: false }),
    }),
  }
}

/** An agent that ends before it has read everything is no failure of ours. */
function writer(fd: number): Socket {
  const socket = new Socket({ fd, readable: false, writable: true })
  socket.on('error', (error) => {
    if (errnoOf(error) !== 'EPIPE') socket.destroy()
  })
  return socket
}

function ptyParts(
  request: Extract<StdioRequest, { kind: 'pty' }>,
  terminals: number,
  owner: { uid: number; gid: number },
  observe?: OutputObserver,
): Parts {
  const { master, slave } = openTerminal(terminals, owner)
  resizeTerminal(master, request.columns, request.rows)
  const through = handThrough(request.inherit ?? [null, null, null], observe)
  const [input, output, errors] = through.child.map((fd) => (fd < 0 ? slave : fd))
  return {
    child: [input ?? slave, output ?? slave, errors ?? slave],
    // init takes descriptor 0 as the terminal; when that is a file, the agent has none to control.
    terminal: input === slave,
    childEnds: [slave, ...through.childEnds],
    ours: [master, ...through.ours],
    streams: () => {
      const stream = new ReadStream(master)
      const resize = (columns: number, rows: number): void => {
        if (!stream.destroyed) resizeTerminal(master, columns, rows)
      }
      return { input: stream, output: untilHangup(stream), resize, copied: through.copy() }
    },
  }
}

/**
 * The terminal's output with a proper end. Linux says that the last slave is closed by EIO, which Node takes for a failure.
 * Polled by libuv: no thread waits for the agent's next word.
 */
function untilHangup(stream: ReadStream): PassThrough {
  const output = new PassThrough()
  stream.on('error', () => stream.destroy())
  stream.on('close', () => output.end())
  stream.pipe(output, { end: false })
  return output
}
