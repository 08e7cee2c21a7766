// pure
import type { Headers } from '../request-nature.ts'
import { STATIC_FIELDS } from './header-table.ts'

const whole = new Map<string, number>()
const names = new Map<string, number>()
for (const [at, [name, value]] of STATIC_FIELDS.entries()) {
  if (value !== '') whole.set(`${name}=${value}`, at + 1)
  if (!names.has(name)) names.set(name, at + 1)
}

/** The other end is told at the beginning that nothing will be remembered: then it cannot be asked for less. */
const FORGET = 0x20

/**
 * Writes header blocks that refer to nothing said before, and pack nothing: an answer travels over a loopback, and two blocks
 * of different branches have nothing in common that could be guessed.
 */
export class HeaderWriter {
  #begun = false

  write(fields: Headers): Buffer {
    const parts: (Buffer | number[])[] = this.#begun ? [] : [[FORGET]]
    this.#begun = true
    for (const [name, value] of fields) {
      const known = whole.get(`${name}=${value}`)
      if (known !== undefined) {
        parts.push(number(0x80, 7, known))
        continue
      }
      const index = names.get(name)
      parts.push(number(0, 4, index ?? 0))
      if (index === undefined) parts.push(number(0, 7, name.length), Buffer.from(name, 'latin1'))
      parts.push(number(0, 7, value.length), Buffer.from(value, 'latin1'))
    }
    return Buffer.concat(parts.map((part) => (Buffer.isBuffer(part) ? part : Buffer.from(part))))
  }
}

function number(flags: number, bits: number, value: number): number[] {
  const most = 2 ** bits - 1
  if (value < most) return [flags | value]
  const bytes = [flags | most]
  let rest = value - most
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return [...bytes, rest]
}
