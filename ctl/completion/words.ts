// pure
import { BUDGET_KINDS } from '../../daemon/contract/profile.ts'
import { COMMON_OPTIONS, type Verb } from '../verb.ts'

/** What stands at a place of the command line; shells ask the machine for branches and profiles. */
export type Kind = 'branch' | 'profile' | 'command' | 'directory' | 'file' | 'nothing' | readonly string[]

export interface CompletedOption {
  /** `--follow` and, where there is one, `-f`. */
  readonly flags: readonly string[]
  readonly text: string
  /** What its value is; undefined for a switch. */
  readonly takes: Kind | undefined
}

/** One verb as a shell completes it: `run`, or `daemon install`. */
export interface CompletedVerb {
  readonly words: string
  readonly summary: string
  readonly options: readonly CompletedOption[]
  readonly inner: readonly { name: string; summary: string }[]
  /** One kind for each place; the last one stands for all that follow when `repeats`. */
  readonly places: readonly Kind[]
  readonly repeats: boolean
}

const SIGNALS = ['TERM', 'INT', 'KILL', 'STOP', 'CONT', 'HUP', 'QUIT', 'USR1', 'USR2']
const BUDGETS = BUDGET_KINDS.map((kind) => `${kind}=`)

/** By the name between the brackets, as the table of verbs writes it. */
const KINDS: Readonly<Record<string, Kind>> = {
  id: 'branch',
  branch: 'branch',
  'branch|profile': 'branch',
  'name|file': 'profile',
  from: 'profile',
  to: 'profile',
  command: 'command',
  dir: 'directory',
  file: 'file',
  path: 'file',
  'kind=value': BUDGETS,
}
/** The same name means something else here. */
const EXCEPTIONS: Readonly<Record<string, Kind>> = {
  'signal name': SIGNALS,
  '--extends name': 'profile',
}

function kindOf(where: string, bracketed: string): Kind {
  const name = bracketed.replace(/[<>[\]]|\.\.\./g, '')
  const known = EXCEPTIONS[`${where} ${name}`] ?? KINDS[name]
  if (known !== undefined) return known
  return /^[a-z-]+(\|[a-z-]+)+$/.test(name) ? name.split('|') : 'nothing'
}

export const completedVerbs = (verbs: readonly Verb[], above = ''): readonly CompletedVerb[] =>
  verbs.flatMap((verb) => {
    const words = `${above}${verb.name}`
    const inner = verb.verbs ?? []
    const args = (verb.args ?? '').split(' ').filter((arg) => arg !== '')
    const own: CompletedVerb = {
      words,
      summary: verb.summary,
      options: [...(verb.options ?? []), ...COMMON_OPTIONS, HELP].map(([flags, text]) =>
        optionOf(flags, text),
      ),
      inner: inner.map(({ name, summary }) => ({ name, summary })),
      places: args.map((arg) => kindOf(verb.name, arg)),
      repeats: args.at(-1)?.includes('...') === true,
    }
    return [own, ...completedVerbs(inner, `${words} `)]
  })

const HELP = ['-h, --help', 'say what it does'] as const

function optionOf(flags: string, text: string): CompletedOption {
  const names = flags.match(/(?<![\w-])--?[a-z-]+/g) ?? []
  const value = /<[^>]*>/.exec(flags)?.[0]
  return { flags: names, text, takes: value === undefined ? undefined : kindOf(names.at(-1) ?? '', value) }
}
