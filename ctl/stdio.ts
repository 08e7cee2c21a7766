import { isatty } from 'node:tty'
import type { AgentExit } from '../daemon/contract/branch.ts'
import type { SessionStdio, SessionStreams } from '../daemon/contract/engine.ts'
import { DetachKeys } from './detach-keys.ts'

/**
 * The agent never gets the caller's terminal (it could type into it): descriptors that are terminals become the
 * agent's own PTY, the engine connects the others. Asked without touching Node's streams, which would make a pipe on
 * descriptor 0 non-blocking for the agent too.
 */
export function sessionStdio(): SessionStdio {
  const terminals = [isatty(0), isatty(1), isatty(2)]
  if (!terminals.some((terminal) => terminal === true)) return { kind: 'inherit', fds: [0, 1, 2] }
  const inherit = (fd: number): number | null => (terminals[fd] === true ? null : fd)
  return { kind: 'pty', ...screenSize(screenOf()), inherit: [inherit(0), inherit(1), inherit(2)] }
}

/** A terminal for an agent at which nobody sits yet. */
export const unattendedTerminal = (): SessionStdio => ({
  kind: 'pty',
  ...screenSize(screenOf()),
  inherit: [null, null, null],
})

const screenOf = (): NodeJS.WriteStream => (process.stdout.isTTY === true ? process.stdout : process.stderr)

/** A terminal that does not know its size says 0; programs then believe in a screen without a column. */
const screenSize = (screen: NodeJS.WriteStream): { columns: number; rows: number } => ({
  columns: screen.columns || 80,
  rows: screen.rows || 24,
})

export interface RelayOptions {
  /** What runs has a terminal: single keys go to it, and it follows the size of the screen. */
  terminal: boolean
  /** Standard input is passed on also where it is no terminal. */
  typeAlways?: boolean
  /** Where the terminal of what runs is shown; the caller's own screen unless something else is said. */
  show?: NodeJS.WriteStream
  /** The detach keys let go. */
  detachable?: boolean
}

/** Connects the caller's streams with those of what runs until that has ended; the terminal is always restored. Null: let go. */
export async function relay(session: SessionStreams, options: RelayOptions): Promise<AgentExit | null> {
  const { output, errors } = session
  // A reader that closed the pipe has seen enough.
  const closed = new Promise<null>((resolve) => process.stdout.on('error', () => resolve(null)))
  const screen = screenOf()
  const drained = Promise.all([
    output === undefined ? null : copy(output, options.terminal ? (options.show ?? screen) : process.stdout),
    errors === undefined ? null : copy(errors, process.stderr),
  ])
  const keyboard = connectKeyboard(session, options)
  const stopResizing = options.terminal && screen.isTTY ? followSize(session, screen) : () => undefined
  try {
    const exit = await Promise.race([session.exited, keyboard.detached, closed])
    if (exit !== null) await drained
    return exit
  } finally {
    stopResizing()
    keyboard.release()
  }
}

/** Ends with the stream, whether it says so or breaks off: a PTY master reads EIO when its last slave is closed. */
function copy(from: NodeJS.ReadableStream, to: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['end', 'close', 'error']) from.on(event, () => resolve())
    from.pipe(to, { end: false })
  })
}

function followSize(session: SessionStreams, screen: NodeJS.WriteStream): () => void {
  const resize = (): void => {
    const { columns, rows } = screenSize(screen)
    session.resize(columns, rows)
  }
  screen.on('resize', resize)
  return () => screen.off('resize', resize)
}

interface Keyboard {
  /** Settles, with null, when the detach keys were pressed. */
  readonly detached: Promise<null>
  release(): void
}

function connectKeyboard(
  { input }: SessionStreams,
  { terminal, typeAlways, detachable }: RelayOptions,
): Keyboard {
  const fromTerminal = isatty(0)
  const never: Keyboard = { detached: new Promise(() => undefined), release: () => undefined }
  if (input === undefined || !(fromTerminal || typeAlways === true)) return never
  const raw = fromTerminal && terminal
  const keys = detachable === true && raw ? new DetachKeys() : null
  let type: (bytes: Buffer) => void = () => undefined
  const detached = new Promise<null>((resolve) => {
    type = (bytes) => {
      const { pass, detached: done } = keys?.type(bytes, Date.now()) ?? { pass: bytes, detached: false }
      if (pass.length > 0 && input.writable && !input.write(pass)) {
        process.stdin.pause()
        input.once('drain', () => process.stdin.resume())
      }
      if (done) resolve(null)
    }
  })
  if (raw) process.stdin.setRawMode(true)
  process.stdin.on('data', type)
  return {
    detached,
    release: () => {
      process.stdin.off('data', type)
      if (raw) process.stdin.setRawMode(false)
      process.stdin.pause()
    },
  }
}
