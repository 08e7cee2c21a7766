// pure
import { argumentCases, quoted, valueCases, wordCase } from './line.ts'
import type { CompletedVerb } from './words.ts'

/**
 * Names come from the machine and are offered only when they are what names may be: `compgen -W` expands what it is
 * given, so nothing else may ever reach it.
 */
const HEAD = `# puzzlectl completion for bash: source <(puzzlectl completion bash)
_puzzlectl_names() { awk 'NR > 1 { for (i = 1; i <= '"$1"'; i++) if ($i ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/) print $i }'; }
_puzzlectl_offer() {
  local kind=$1; shift
  case $kind in
  branch) COMPREPLY=($(compgen -W "$(puzzlectl ls 2>/dev/null | _puzzlectl_names 2)" -- "$word")) ;;
  profile)
    COMPREPLY=($(compgen -W "$(puzzlectl profile list 2>/dev/null | _puzzlectl_names 1)" -- "$word"))
    compopt -o filenames -o default; COMPREPLY+=($(compgen -f -- "$word")) ;;
  command) COMPREPLY=($(compgen -c -- "$word")) ;;
  directory) compopt -o filenames; COMPREPLY=($(compgen -d -- "$word")) ;;
  file) compopt -o filenames -o default; COMPREPLY=($(compgen -f -- "$word")) ;;
  words) COMPREPLY=($(compgen -W "$*" -- "$word")); [[ $* != *= ]] || compopt -o nospace ;;
  esac
}
`

/** A completion script for bash. The words of the line are read as the program reads them: verb, inner verb, options, places. */
export function bashScript(verbs: readonly CompletedVerb[]): string {
  return `${HEAD}_puzzlectl() {
  local word=\${COMP_WORDS[COMP_CWORD]} verb= before= at=0 i one
  COMPREPLY=()
  # Bash breaks --name=value into three words.
  [[ $word != = ]] || word=
  for ((i = 1; i < COMP_CWORD; i++)); do
    one=\${COMP_WORDS[i]}
    if [[ $before == -- ]]; then at=$((at + 1)); continue; fi
    if [[ $one == = ]]; then continue; fi
${wordCase(verbs)}
  done
  [[ $before == -- ]] || case "$verb:$before:$word" in
${verbs.flatMap(optionCases).join('\n')}
  *::-*) return ;;
  esac
  case "$verb:$at" in
  :0) _puzzlectl_offer words ${verbs
    .filter(({ words }) => !words.includes(' '))
    .map(({ words }) => words)
    .join(' ')} ;;
${verbs.flatMap(placeCases).join('\n')}
  esac
}
complete -F _puzzlectl puzzlectl
`
}

const optionCases = ({ words, options }: CompletedVerb): string[] => [
  ...valueCases(words, options),
  `  ${quoted(`${words}::-`)}*) _puzzlectl_offer words ${options.flatMap(({ flags }) => flags.slice(-1)).join(' ')}; return ;;`,
]

function placeCases(verb: CompletedVerb): string[] {
  const { words, inner } = verb
  if (inner.length > 0)
    return [`  ${quoted(`${words}:0`)}) _puzzlectl_offer words ${inner.map(({ name }) => name).join(' ')} ;;`]
  return argumentCases(verb, '_puzzlectl_offer file')
}
