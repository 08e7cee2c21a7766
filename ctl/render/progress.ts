// pure

const WIDTH = 20
const BLOCK = 4
const STEP_MILLIS = 200

/** `[    ====            ] comparing, 3 s`: a block that goes to and fro, never wider than the screen. */
export function progressLine(what: string, passedMillis: number, columns: number): string {
  const room = WIDTH - BLOCK
  const step = Math.floor(passedMillis / STEP_MILLIS) % (2 * room)
  const at = step < room ? step : 2 * room - step
  const bar = `${' '.repeat(at)}${'='.repeat(BLOCK)}${' '.repeat(room - at)}`
  // One column stays free: a full line would wrap, and could not be cleared.
  return `[${bar}] ${what}, ${Math.floor(passedMillis / 1000)} s`.slice(0, Math.max(0, columns - 1))
}
