// pure
import type { CompletedVerb, Kind } from './words.ts'

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** The shell function that answers for a kind. */
const answer = (kind: Kind): string => (typeof kind === 'string' ? kind : `words ${kind.join(' ')}`)

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
  const takers = new Set(
    verbs.flatMap(({ options }) => options.flatMap(({ flags, takes }) => (takes === undefined ? [] : flags))),
  )
  return `${HEAD}_puzzlectl() {
  local word=\${COMP_WORDS[COMP_CWORD]} verb= before= at=0 i one
  COMPREPLY=()
  # Bash breaks --name=value into three words.
  [[ $word != = ]] || word=
  for ((i = 1; i < COMP_CWORD; i++)); do
    one=\${COMP_WORDS[i]}
    if [[ $before == -- ]]; then at=$((at + 1)); continue; fi
    if [[ $one == = ]]; then continue; fi
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
  ...options.flatMap(({ flags, takes }) =>
    takes === undefined
      ? []
      : flags.map(
          (flag) => `  ${quoted(`${words}:${flag}:`)}*) _puzzlectl_offer ${answer(takes)}; return ;;`,
        ),
  ),
  `  ${quoted(`${words}::-`)}*) _puzzlectl_offer words ${options.flatMap(({ flags }) => flags.slice(-1)).join(' ')}; return ;;`,
]

function placeCases({ words, inner, places, repeats }: CompletedVerb): string[] {
  if (inner.length > 0)
    return [`  ${quoted(`${words}:0`)}) _puzzlectl_offer words ${inner.map(({ name }) => name).join(' ')} ;;`]
  return places.map((kind, at) => {
    const last = at === places.length - 1 && repeats
    // What follows a command are its own arguments.
    if (last && kind === 'command' && at >= 0)
      return `  ${quoted(`${words}:${at}`)}) _puzzlectl_offer command ;;\n  ${quoted(`${words}:`)}*) _puzzlectl_offer file ;;`
    return `  ${quoted(`${words}:${last ? '' : at}`)}${last ? '*' : ''}) _puzzlectl_offer ${answer(kind)} ;;`
  })
}
