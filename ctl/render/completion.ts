// pure
import { COMMON_OPTIONS, type Verb } from '../verb.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

interface Entry {
  /** `run`, or `daemon install`. */
  words: string
  summary: string
  options: readonly { flag: string; takes: boolean; text: string }[]
  inner: readonly string[]
}

/** A completion script: verbs, inner verbs and options; everything else is completed as files are. */
export function completionScript(verbs: readonly Verb[], shell: Shell): string {
  const entries = verbs.flatMap((verb) => entriesOf(verb, verb.name))
  if (shell === 'bash') return bashScript(verbs, entries)
  return shell === 'zsh' ? zshScript(verbs, entries) : fishScript(verbs, entries)
}

function entriesOf(verb: Verb, words: string): Entry[] {
  const inner = verb.verbs ?? []
  const options = [...(verb.options ?? []), ...COMMON_OPTIONS].map(([flags, text]) => ({
    flag: /--[a-z-]+/.exec(flags)?.[0] ?? flags,
    takes: flags.includes('<'),
    text,
  }))
  const own = { words, summary: verb.summary, options, inner: inner.map(({ name }) => name) }
  return [own, ...inner.flatMap((one) => entriesOf(one, `${words} ${one.name}`))]
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

function bashScript(verbs: readonly Verb[], entries: readonly Entry[]): string {
  const cases = entries
    .toReversed()
    .map(({ words, inner, options }) => {
      const offered = [...inner, ...options.map(({ flag }) => flag)].join(' ')
      // The words so far end in a blank, or in the word that is being typed.
      return `    ${quoted(words.includes(' ') ? words : `${words} `)}${words.includes(' ') ? '' : '*'}) words=${quoted(offered)} ;;`
    })
    .join('\n')
  return `# puzzlectl completion for bash: source <(puzzlectl completion bash)
_puzzlectl() {
  local word=\${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=${quoted(verbs.map(({ name }) => name).join(' '))}
  else
    case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _puzzlectl puzzlectl
`
}

function zshScript(verbs: readonly Verb[], entries: readonly Entry[]): string {
  const described = (names: readonly (readonly [string, string])[]): string =>
    names.map(([name, text]) => quoted(`${name}:${text.replaceAll(':', '\\:')}`)).join(' ')
  const cases = entries
    .filter(({ words }) => !words.includes(' '))
    .map(({ words, options, inner }) => {
      const names = [
        ...inner.map((name) => [name, ''] as const),
        ...options.map(({ flag, text }) => [flag, text] as const),
      ]
      return `    ${words}) offered=(${described(names)}) ;;`
    })
    .join('\n')
  return `#compdef puzzlectl
# puzzlectl completion for zsh: puzzlectl completion zsh > "\${fpath[1]}/_puzzlectl"
_puzzlectl() {
  local -a offered
  if (( CURRENT == 2 )); then
    offered=(${described(verbs.map(({ name, summary }) => [name, summary] as const))})
    _describe verb offered
    return
  fi
  case $words[2] in
${cases}
  esac
  _describe option offered || _files
}
compdef _puzzlectl puzzlectl
`
}

function fishScript(verbs: readonly Verb[], entries: readonly Entry[]): string {
  const lines = verbs.map(
    ({ name, summary }) =>
      `complete -c puzzlectl -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
  )
  for (const { words, options, inner } of entries.filter((entry) => !entry.words.includes(' '))) {
    const seen = `-n ${quoted(`__fish_seen_subcommand_from ${words}`)}`
    for (const name of inner) lines.push(`complete -c puzzlectl ${seen} -f -a ${name}`)
    for (const { flag, takes, text } of options)
      lines.push(`complete -c puzzlectl ${seen} -l ${flag.slice(2)}${takes ? ' -r' : ''} -d ${quoted(text)}`)
  }
  return `# puzzlectl completion for fish: puzzlectl completion fish | source\n${lines.join('\n')}\n`
}
