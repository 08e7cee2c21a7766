// pure
import type { CompletedOption, CompletedVerb, Kind } from './words.ts'

/** What the scripts for bash and zsh share: both are shells of one family, with functions `_puzzlectl_offer` of their own. */

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** What the shell's function is asked to offer for a kind. */
export const answer = (kind: Kind): string => (typeof kind === 'string' ? kind : `words ${kind.join(' ')}`)

/** Takes the word `$one` into account: the verb so far is `$verb`, `$before` an option that wants a value, `$at` the place. */
export function wordCase(verbs: readonly CompletedVerb[]): string {
  const takers = new Set(
    verbs.flatMap(({ options }) => options.flatMap(({ flags, takes }) => (takes === undefined ? [] : flags))),
  )
  const verbCases = verbs.map(
    ({ words }) => `      ${quoted(words.includes(' ') ? words : ` ${words}`)}) verb=${quoted(words)} ;;`,
  )
  return `    if [[ -n $before ]]; then before=; continue; fi
    case $one in
    --) before=-- ;;
    ${[...takers].join('|')}) before=$one ;;
    -*) ;;
    *) case "$verb $one" in
${verbCases.join('\n')}
      *) at=$((at + 1)) ;;
      esac ;;
    esac`
}

/** Behind an option that takes a value. */
export const valueCases = (words: string, options: readonly CompletedOption[]): string[] =>
  options.flatMap(({ flags, takes }) =>
    takes === undefined
      ? []
      : flags.map(
          (flag) => `  ${quoted(`${words}:${flag}:`)}*) _puzzlectl_offer ${answer(takes)}; return ;;`,
        ),
  )

/** The places of a verb's arguments, the last of which may repeat; what follows a command are its own arguments. */
export const argumentCases = ({ words, places, repeats }: CompletedVerb, files: string): string[] =>
  places.flatMap((kind, at) => {
    const last = at === places.length - 1 && repeats
    if (last && kind === 'command')
      return [
        `  ${quoted(`${words}:${at}`)}) _puzzlectl_offer command ;;`,
        `  ${quoted(`${words}:`)}*) ${files} ;;`,
      ]
    return [
      `  ${quoted(`${words}:${last ? '' : at}`)}${last ? '*' : ''}) _puzzlectl_offer ${answer(kind)} ;;`,
    ]
  })
