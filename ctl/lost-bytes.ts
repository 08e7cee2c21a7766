import { readFileSync, readlinkSync } from 'node:fs'
import { PuzzledError } from '../daemon/lib/errors.ts'

const REPLACED = '\ufffd'

/** Node reads words as UTF-8 and puts U+FFFD where they are not: another name than the one that was meant. */
const isOther = (word: string, raw: Buffer | undefined): boolean =>
  word.includes(REPLACED) && raw !== undefined && !Buffer.from(word).equals(raw)

/** Refuses words of the command line that this program has not received as they were typed. */
export function refuseLostBytes(argv: readonly string[]): void {
  if (!argv.some((word) => word.includes(REPLACED))) return
  const raw = readCommandLine().slice(-argv.length)
  const lost = argv.find((word, index) => isOther(word, raw[index]))
  if (lost === undefined) return
  throw new PuzzledError('usage', `The argument "${lost}" is not UTF-8`, {
    hint: `Let a shell in the branch make the name: sh -c 'cat "$(printf "a\\377b")"'`,
  })
}

function readCommandLine(): Buffer[] {
  const words = readFileSync('/proc/self/cmdline').toString('latin1').split('\0')
  return words.slice(0, -1).map((word) => Buffer.from(word, 'latin1'))
}

/** The same of the directory in which the caller stands. */
export function refuseLostDirectory(path: string): void {
  if (!isOther(path, readlinkSync('/proc/self/cwd', { encoding: 'buffer' }))) return
  throw new PuzzledError('usage', `The name of the working directory "${path}" is not UTF-8`, {
    hint: 'No branch can be made of it: rename it, or mount it under another name (mount --bind).',
  })
}
