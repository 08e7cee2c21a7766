// pure

/**
 * How many bits each byte, and behind them the end, has in the code of RFC 7541, written as runs: `28x7` is seven times 28.
 * The code is canonical (shorter ones first, equal ones in the order of their bytes), so the lengths are all of it.
 */
const LENGTHS =
  '13,23,28x7,24,30,28x2,30,28x8,30,28x9,6,10x2,12,13,6,8,11,10x2,8,11,8,6x3,5x3,6x7,7,8,15,6,12,10,13,6,7x22,8,7,8,13,19,13,14,6,15,5,' +
  '6,5,6,5,6x3,5,7x2,6x3,5,6,7,6,5x2,6,7x5,15,11,14,13,28,20,22,20x2,22x3,23,22,23x5,24,23,24x2,22,23,24,23x4,21,22,23,22,23x2,24,22,' +
  '21,20,22x2,23x2,21,23,22x2,24,21,22,23x2,21x2,22,21,23,22,23x2,20,22x3,23,22x2,23,26x2,20,19,22,23,22,25,26x3,27x2,26,24,25,19,21,' +
  '26,27x2,26,27,24,21x2,26x2,28,27x3,20,24,20,21,22,21x2,23,22x2,25x2,24x2,26,23,26,27,26x2,27x5,28,27x5,26,30'

const END = 256
/** A number below stands for the next step, `LEAF` and above for the byte that is found. */
const LEAF = 1_024

/** Two steps for each state, one for each bit. */
function makeSteps(): Uint16Array {
  const bits = LENGTHS.split(',').flatMap((run) => {
    const [length, times] = run.split('x').map(Number)
    return Array.from({ length: times ?? 1 }, () => length ?? 0)
  })
  const steps = new Uint16Array(2 * bits.length)
  const order = bits.map((length, symbol) => ({ length, symbol })).sort((a, b) => a.length - b.length)
  let states = 1
  let [code, before] = [0, order[0]?.length ?? 0]
  for (const { length, symbol } of order) {
    code *= 2 ** (length - before)
    before = length
    let state = 0
    for (let bit = length - 1; bit >= 0; bit--) {
      const at = 2 * state + (Math.floor(code / 2 ** bit) % 2)
      if (bit === 0) steps[at] = LEAF + symbol
      else if (steps[at] === 0) steps[at] = states++
      state = steps[at] ?? 0
    }
    code++
  }
  return steps
}

let made: Uint16Array | undefined

/** What was written, one character for each byte; undefined where it is no text of this code. */
export function huffmanText(bytes: Buffer): string | undefined {
  made ??= makeSteps()
  const steps = made
  // The shortest code has five bits.
  const out = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5))
  let [length, state, since, ones] = [0, 0, 0, true]
  for (const byte of bytes)
    for (let mask = 0x80; mask > 0; mask >>= 1) {
      const bit = (byte & mask) === 0 ? 0 : 1
      const step = steps[2 * state + bit] ?? 0
      since++
      if (bit === 0) ones = false
      if (step < LEAF) {
        state = step
        continue
      }
      if (step === LEAF + END) return undefined
      out[length++] = step - LEAF
      state = 0
      since = 0
      ones = true
    }
  // What fills the last byte up are the first bits of the end's own code: ones, and fewer than eight.
  return since < 8 && ones ? out.toString('latin1', 0, length) : undefined
}
