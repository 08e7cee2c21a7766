// pure
import type { CompletedOption, CompletedVerb, Kind } from './words.ts'

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const HEAD = `# puzzlectl completion for fish: puzzlectl completion fish | source
function __puzzlectl_branches
    puzzlectl ls 2>/dev/null | awk 'NR > 1 { for (i = 1; i <= 2; i++) if ($i ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/) print $i }'
end
function __puzzlectl_profiles
    puzzlectl profile list 2>/dev/null | awk 'NR > 1 && $1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ { print $1 }'
end
`

/** What `complete` is told of a kind: whether files are offered, and which words. */
function offers(kind: Kind): string {
  if (typeof kind !== 'string') return `-f -a ${quoted(kind.join(' '))}`
  if (kind === 'branch') return `-f -a '(__puzzlectl_branches)'`
  if (kind === 'profile') return `-F -a '(__puzzlectl_profiles)'`
  if (kind === 'command') return `-a '(__fish_complete_subcommand)'`
  if (kind === 'directory') return `-f -a '(__fish_complete_directories)'`
  return kind === 'file' ? '-F' : '-f'
}

/** A completion script for fish. Places are not told apart: every kind that a verb takes is offered. */
export function fishScript(verbs: readonly CompletedVerb[]): string {
  return `${HEAD}${verbs.flatMap(linesOf).join('\n')}\n`
}

function linesOf({ words, summary, options, inner, places }: CompletedVerb): string[] {
  const [first = '', second] = words.split(' ')
  const seen = `__fish_seen_subcommand_from ${first}`
  const here = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`
  const lines =
    second === undefined ? [begin('__fish_use_subcommand', `-f -a ${first} -d ${quoted(summary)}`)] : []
  const before = `${seen}; and not __fish_seen_subcommand_from ${inner.map(({ name }) => name).join(' ')}`
  for (const one of inner) lines.push(begin(before, `-f -a ${one.name} -d ${quoted(one.summary)}`))
  for (const kind of new Set(inner.length > 0 ? [] : places)) lines.push(begin(here, offers(kind)))
  for (const option of options) lines.push(begin(here, optionText(option)))
  return lines
}

const begin = (condition: string, rest: string): string =>
  `complete -c puzzlectl -n ${quoted(condition)} ${rest}`

function optionText({ flags, text, takes }: CompletedOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
  const value = takes === undefined ? '' : ` -r ${offers(takes)}`
  return `${names.join(' ')}${value} -d ${quoted(text)}`
}
