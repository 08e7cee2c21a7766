// pure
import { argumentCases, quoted, valueCases, wordCase } from './line.ts'
import type { CompletedVerb } from './words.ts'

const described = (rows: readonly (readonly [name: string, text: string])[]): string =>
  rows
    .map(([name, text]) => quoted(`${name.replaceAll(':', '\\:')}:${text.replaceAll(':', '\\:')}`))
    .join(' ')

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
  const top = verbs.filter(({ words }) => !words.includes(' '))
  return `${HEAD}_puzzlectl() {
  local verb= before= at=0 i one
  local -a offered
  for ((i = 2; i < CURRENT; i++)); do
    one=$words[i]
    if [[ $before == -- ]]; then at=$((at + 1)); continue; fi
${wordCase(verbs)}
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
  ...valueCases(words, options),
  `  ${quoted(`${words}::-`)}*) offered=(${described(options.map(({ flags, text }) => [flags.at(-1) ?? '', text]))}); _describe -o option offered; return ;;`,
]

function placeCases(verb: CompletedVerb): string[] {
  const { words, inner } = verb
  if (inner.length > 0)
    return [
      `  ${quoted(`${words}:0`)}) offered=(${described(inner.map(({ name, summary }) => [name, summary]))}); _describe verb offered ;;`,
    ]
  return argumentCases(verb, '_files')
}
