// pure

const WIDTH = 20
const BLOCK = 4
const STEP_MILLIS = 200

/**
 * `[=====               ] committing, 27 %, 3 s` where the end is known, otherwise a block that goes to and fro and what is
 * counted; never wider than the screen.
 */
export function progressLine(
  what: string,
  passedMillis: number,
  columns: number,
  share?: readonly [done: number, total: number | null],
): string {
  const [done = 0, total = null] = share ?? []
  const part = total === null || total === 0 ? null : Math.min(1, done / total)
  const bar = part === null ? wandering(passedMillis) : '='.repeat(Math.round(part * WIDTH)).padEnd(WIDTH)
  const far = part === null ? (done > 0 ? `, ${done} paths` : '') : `, ${Math.floor(part * 100)} %`
  // One column stays free: a full line would wrap, and could not be cleared.
  return `[${bar}] ${what}${far}, ${Math.floor(passedMillis / 1000)} s`.slice(0, Math.max(0, columns - 1))
}

function wandering(passedMillis: number): string {
  const room = WIDTH - BLOCK
  const step = Math.floor(passedMillis / STEP_MILLIS) % (2 * room)
  const at = step < room ? step : 2 * room - step
  return `${' '.repeat(at)}${'='.repeat(BLOCK)}${' '.repeat(room - at)}`
}
