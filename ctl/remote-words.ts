// pure
import type { OptionValues, Verb } from './verb.ts'

/** One word for a POSIX shell, whatever it holds. */
export const quotedWord = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

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
