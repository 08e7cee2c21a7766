import type { TellProgress } from '../daemon/lib/progress.ts'
import { progressLine } from './render/progress.ts'

const SHOWN_AFTER_MILLIS = 1000
const STEP_MILLIS = 200
const CLEAR_LINE = '\r\u001b[K'

/** Where progress is drawn; a terminal, or nothing is drawn. */
export interface Screen {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** The work that this process waits for; a person waits for one thing at a time. */
let shown: { tell: TellProgress } | undefined

/** How far the work is that is waited for. Draws by itself: work in this process lets no timer run. */
export const tellProgress: TellProgress = (done, total) => shown?.tell(done, total)

/**
 * Tells a person at a terminal that work goes on, once it lasts longer than a second: with how much of it is done where
 * that is known, otherwise (a tree is walked, a disk is synced) what moves says "alive" and the seconds say how long.
 */
export async function withProgress<Result>(
  what: string,
  work: Promise<Result> | (() => Promise<Result>),
  screen: Screen = process.stderr,
): Promise<Result> {
  const begin = (): Promise<Result> => (typeof work === 'function' ? work() : work)
  if (screen.isTTY !== true || process.env.TERM === 'dumb') return begin()
  const started = performance.now()
  let drawnAt: number | undefined
  let share: readonly [done: number, total: number | null] | undefined
  const draw = (): void => {
    const now = performance.now()
    if (now - started < SHOWN_AFTER_MILLIS || now - (drawnAt ?? 0) < STEP_MILLIS - 1) return
    drawnAt = now
    screen.write(`\r${progressLine(what, now - started, screen.columns ?? 80, share)}\u001b[K`)
  }
  shown = {
    tell: (done, total) => {
      share = [done, total]
      draw()
    },
  }
  const timer = setInterval(draw, STEP_MILLIS)
  try {
    return await begin()
  } finally {
    shown = undefined
    clearInterval(timer)
    if (drawnAt !== undefined) screen.write(CLEAR_LINE)
  }
}
