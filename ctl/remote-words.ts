// pure
import type { OptionValues, Verb } from './verb.ts'

/** One word for a POSIX shell, whatever it holds. */
export const quotedWord = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

const NO_PUZZLECTL = [
  'command -v puzzlectl >/dev/null 2>&1 && exec puzzlectl "$@"',
  'echo "puzzlectl: There is no puzzlectl in the PATH of $(id -un) on $(uname -n)" >&2',
  'echo "  hint: Install puzzled there, or put puzzlectl into the PATH that ssh gives: ssh HOST env" >&2',
  'exit 69',
].join('; ')

/** What the login shell there is given: `sh`, whatever that shell is, says so when there is nothing to run. */
export const remoteCommand = (words: readonly string[]): string =>
  ['exec', 'sh', '-c', NO_PUZZLECTL, 'puzzlectl', ...words]
    .map((word) => (/^[a-z-]+$/.test(word) ? word : quotedWord(word)))
    .join(' ')

/**
 * The command line of a verb, written anew from what was understood of it: options in their long form with `=`, and
 * everything else behind `--`. So nothing that was an argument here can become an option there.
 */
export function commandWords(
  verb: Pick<Verb, 'options'>,
  words: readonly string[],
  args: readonly string[],
  options: OptionValues,
): readonly string[] {
  const flags = [['--json'], ['--state-dir <dir>'], ...(verb.options ?? [])].flatMap(([flag = '']) => {
    const name = /--([a-z-]+)/.exec(flag)?.[1] ?? ''
    const value = options[name.replace(/-([a-z])/g, (_whole, letter: string) => letter.toUpperCase())]
    if (value === true) return [`--${name}`]
    const values = Array.isArray(value) ? value : value === undefined ? [] : [value]
    return values.map((one) => `--${name}=${String(one)}`)
  })
  return [...words, ...flags, ...(args.length === 0 ? [] : ['--', ...args])]
}
