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

/**
 * Tells a person at a terminal that work goes on, once it lasts longer than a second. Nobody knows how much there is before
 * it is done (a tree is walked, a disk is synced), so what moves says "alive" and the seconds say how long.
 */
export async function withProgress<Result>(
  what: string,
  work: Promise<Result>,
  screen: Screen = process.stderr,
): Promise<Result> {
  if (screen.isTTY !== true || process.env.TERM === 'dumb') return work
  const started = performance.now()
  let drawn = false
  const timer = setInterval(() => {
    const passed = performance.now() - started
    if (passed < SHOWN_AFTER_MILLIS) return
    drawn = true
    screen.write(`\r${progressLine(what, passed, screen.columns ?? 80)}`)
  }, STEP_MILLIS)
  try {
    return await work
  } finally {
    clearInterval(timer)
    if (drawn) screen.write(CLEAR_LINE)
  }
}
