import { isatty } from 'node:tty'
import type { AgentSession, SessionStdio } from '../daemon/contract/engine.ts'

/**
 * The agent never gets the caller's terminal (it could type into it): descriptors that are terminals become the
 * agent's own PTY, the engine connects the others. Asked without touching Node's streams, which would make a pipe on
 * descriptor 0 non-blocking for the agent too.
 */
export function sessionStdio(): SessionStdio {
  const terminals = [isatty(0), isatty(1), isatty(2)]
  if (!terminals.some((terminal) => terminal === true)) return { kind: 'inherit', fds: [0, 1, 2] }
  const inherit = (fd: number): number | null => (terminals[fd] === true ? null : fd)
  return {
    kind: 'pty',
    ...screenSize(process.stdout.isTTY === true ? process.stdout : process.stderr),
    inherit: [inherit(0), inherit(1), inherit(2)],
  }
}

/** A terminal that does not know its size says 0; programs then believe in a screen without a column. */
const screenSize = (screen: NodeJS.WriteStream): { columns: number; rows: number } => ({
  columns: screen.columns || 80,
  rows: screen.rows || 24,
})

/** Connects the caller's terminal with the agent's PTY until the agent has ended; the terminal is always restored. */
export async function relay(session: AgentSession): Promise<void> {
  const { input, output } = session
  if (output === undefined) {
    await session.exited
    return
  }
  const screen = process.stdout.isTTY === true ? process.stdout : process.stderr
  const resize = (): void => {
    const { columns, rows } = screenSize(screen)
    session.resize(columns, rows)
  }
  const keys = input === undefined || !isatty(0) ? null : { from: process.stdin, to: input }
  const type = (bytes: Buffer): void => void keys?.to.write(bytes)
  screen.on('resize', resize)
  keys?.from.setRawMode(true)
  keys?.from.on('data', type)
  const drained = new Promise<void>((resolve) => {
    output.on('end', resolve)
    output.on('close', resolve)
    // A PTY master reads EIO when its last slave is closed: that is its end of file.
    output.on('error', () => resolve())
  })
  output.on('data', (bytes: Buffer) => screen.write(bytes))
  try {
    await session.exited
    await drained
  } finally {
    screen.off('resize', resize)
    keys?.from.off('data', type)
    keys?.from.setRawMode(false)
    keys?.from.pause()
  }
}

/** Signals to `puzzlectl` are meant for the agent; the branch then ends in the ordinary way. */
export async function forwardSignals<Result>(
  deliver: (name: string) => Promise<unknown>,
  work: () => Promise<Result>,
  report: (error: unknown) => void,
): Promise<Result> {
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
  const handler = (signal: NodeJS.Signals): void => {
    deliver(signal.slice(3)).catch(report)
  }
  for (const name of names) process.on(name, handler)
  try {
    return await work()
  } finally {
    for (const name of names) process.off(name, handler)
  }
}
