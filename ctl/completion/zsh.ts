// pure
import type { CompletedVerb, Kind } from './words.ts'

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const described = (rows: readonly (readonly [name: string, text: string])[]): string =>
  rows
    .map(([name, text]) => quoted(`${name.replaceAll(':', '\\:')}:${text.replaceAll(':', '\\:')}`))
    .join(' ')
const answer = (kind: Kind): string => (typeof kind === 'string' ? kind : `words ${kind.join(' ')}`)

const HEAD = `#compdef puzzlectl
# puzzlectl completion for zsh: puzzlectl completion zsh > "\${fpath[1]}/_puzzlectl"
_puzzlectl_names() { awk 'NR > 1 { for (i = 1; i <= '"$1"'; i++) if ($i ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/) print $i }' }
_puzzlectl_offer() {
  local kind=$1; shift
  local -a found
  case $kind in
  branch) found=(\${(f)"$(puzzlectl ls 2>/dev/null | _puzzlectl_names 2)"}); compadd -a found ;;
  profile) found=(\${(f)"$(puzzlectl profile list 2>/dev/null | _puzzlectl_names 1)"}); compadd -a found; _files ;;
  command) _command_names -e ;;
  directory) _files -/ ;;
  file) _files ;;
  words) if [[ $* == *=* ]]; then compadd -S '' -- "$@"; else compadd -- "$@"; fi ;;
  esac
}
`

/** A completion script for zsh, with what each verb and option is for. */
export function zshScript(verbs: readonly CompletedVerb[]): string {
  const takers = new Set(
    verbs.flatMap(({ options }) => options.flatMap(({ flags, takes }) => (takes === undefined ? [] : flags))),
  )
  const top = verbs.filter(({ words }) => !words.includes(' '))
  return `${HEAD}_puzzlectl() {
  local verb= before= at=0 i one
  local -a offered
  for ((i = 2; i < CURRENT; i++)); do
    one=$words[i]
    if [[ $before == -- ]]; then at=$((at + 1)); continue; fi
    if [[ -n $before ]]; then before=; continue; fi
    case $one in
    --) before=-- ;;
    ${[...takers].join('|')}) before=$one ;;
    -*) ;;
    *) case "$verb $one" in
${verbs.map(({ words }) => `      ${quoted(words.includes(' ') ? words : ` ${words}`)}) verb=${quoted(words)} ;;`).join('\n')}
      *) at=$((at + 1)) ;;
      esac ;;
    esac
  done
  # --name=value is one word here.
  if [[ -z $before && $words[CURRENT] == --*=* ]]; then before=\${words[CURRENT]%%=*}; compset -P '*='; fi
  [[ $before == -- ]] || case "$verb:$before:$words[CURRENT]" in
${verbs.flatMap(optionCases).join('\n')}
  esac
  case "$verb:$at" in
  :0) offered=(${described(top.map(({ words, summary }) => [words, summary]))}); _describe verb offered ;;
${verbs.flatMap(placeCases).join('\n')}
  esac
}
compdef _puzzlectl puzzlectl
`
}

const optionCases = ({ words, options }: CompletedVerb): string[] => [
  ...options.flatMap(({ flags, takes }) =>
    takes === undefined
      ? []
      : flags.map(
          (flag) => `  ${quoted(`${words}:${flag}:`)}*) _puzzlectl_offer ${answer(takes)}; return ;;`,
        ),
  ),
  `  ${quoted(`${words}::-`)}*) offered=(${described(options.map(({ flags, text }) => [flags.at(-1) ?? '', text]))}); _describe -o option offered; return ;;`,
]

function placeCases({ words, inner, places, repeats }: CompletedVerb): string[] {
  if (inner.length > 0)
    return [
      `  ${quoted(`${words}:0`)}) offered=(${described(inner.map(({ name, summary }) => [name, summary]))}); _describe verb offered ;;`,
    ]
  return places.flatMap((kind, at) => {
    const last = at === places.length - 1 && repeats
    if (last && kind === 'command')
      return [
        `  ${quoted(`${words}:${at}`)}) _puzzlectl_offer command ;;`,
        `  ${quoted(`${words}:`)}*) _files ;;`,
      ]
    return [
      `  ${quoted(`${words}:${last ? '' : at}`)}${last ? '*' : ''}) _puzzlectl_offer ${answer(kind)} ;;`,
    ]
  })
}
