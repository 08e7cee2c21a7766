// pure
import { PuzzledError } from '../lib/errors.ts'

/**
 * Signals by name. STOP and CONT are the freezer's, KILL is the cgroup's; the daemon's own reasons end in one of
 * these. Everything else goes to init, which hands it to the agent's process group.
 */
export type SignalAct =
  | { readonly kind: 'freeze' }
  | { readonly kind: 'thaw' }
  | { readonly kind: 'kill' }
  /** Delivered; when `grace` is set, whatever is left after it is killed. */
  | { readonly kind: 'deliver'; readonly number: number; readonly graceMillis: number | null }

const DELIVERED: Readonly<Record<string, { number: number; graceMillis: number | null }>> = {
  HUP: { number: 1, graceMillis: null },
  INT: { number: 2, graceMillis: 10_000 },
  QUIT: { number: 3, graceMillis: null },
  USR1: { number: 10, graceMillis: null },
  USR2: { number: 12, graceMillis: null },
  TERM: { number: 15, graceMillis: 10_000 },
  WINCH: { number: 28, graceMillis: null },
}

export const SIGNAL_NAMES = ['STOP', 'CONT', 'KILL', ...Object.keys(DELIVERED)] as const

/** `TERM`, `SIGTERM` and `term` are the same. Unknown names are an error that lists the known ones. */
export function signalAct(name: string): SignalAct {
  const short = name.toUpperCase().replace(/^SIG/, '')
  if (short === 'STOP') return { kind: 'freeze' }
  if (short === 'CONT') return { kind: 'thaw' }
  if (short === 'KILL') return { kind: 'kill' }
  const delivered = Object.hasOwn(DELIVERED, short) ? DELIVERED[short] : undefined
  if (delivered !== undefined) return { kind: 'deliver', ...delivered }
  throw new PuzzledError('usage', `Unknown signal ${JSON.stringify(name)}`, {
    hint: `One of ${SIGNAL_NAMES.join(', ')}`,
  })
}
