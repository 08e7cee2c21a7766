// pure
import { Buffer } from 'node:buffer'
import { encodePath } from '../../daemon/contract/bytes.ts'
import { visibleText } from './visible.ts'

const NONE = Buffer.alloc(0)
const CARRIAGE_RETURN = 0x0d

/**
 * What a program wrote, for a person at a terminal, in the pieces in which it comes: a character may begin in one and end
 * in the next. Control characters are shown, and so is every byte that is no text, as `\xNN`.
 */
export class OutputText {
  #held: Buffer = NONE

  /** What can be shown by now. */
  push(bytes: Uint8Array): string {
    const all = Buffer.concat([this.#held, bytes])
    const whole = all.length - unfinished(all)
    this.#held = Buffer.from(all.subarray(whole))
    return shown(all.subarray(0, whole))
  }

  /** What nothing came after. */
  end(): string {
    const rest = this.#held
    this.#held = NONE
    return shown(rest)
  }
}

/** Bytes at the end that what comes next may belong to: of a character, or a carriage return before its newline. */
function unfinished(bytes: Buffer): number {
  if (bytes.at(-1) === CARRIAGE_RETURN) return 1
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const length = lengthOf(bytes[bytes.length - back] ?? 0)
    if (length > 0) return length > back ? back : 0
  }
  return 0
}

/** Of the character that this byte begins; 0 in the middle of one. */
function lengthOf(first: number): number {
  if (first < 0x80) return 1
  if (first < 0xc0) return 0
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
}

const shown = (bytes: Buffer): string => readable(encodePath(bytes).path)

const readable = (text: string): string => visibleText(text.replaceAll('\r\n', '\n'))
