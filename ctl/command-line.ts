import { Command, Option } from 'commander'
import { visibleLine } from './render/visible.ts'
import { COMMON_OPTIONS, type OptionValues, type Verb } from './verb.ts'
import { VERBS } from './verbs.ts'
import { VERSION } from './version.ts'

/** What was understood of the command line: the words of the verb, its arguments, its options. */
export interface Given {
  words: readonly string[]
  args: readonly string[]
  options: OptionValues
}

export type Act = (verb: Verb, given: Given) => Promise<void>

/** Building the commands of all verbs is a good part of a short one's time: where the first word is a verb, that one will do. */
export function verbsFor([first]: readonly string[]): readonly Verb[] {
  const named = VERBS.filter(({ name }) => name === first)
  return named.length === 1 ? named : VERBS
}

/** The whole command line as commander knows it; `act` gets what was understood. */
export function newProgram(verbs: readonly Verb[], act: Act): Command {
  const program = new Command('puzzlectl')
    .description('Run agents in branches: fork, explore, commit.')
    .version(`puzzlectl ${VERSION}`, '-V, --version')
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('  hint: puzzlectl --help lists the verbs')
    .addHelpCommand(false)
    .addHelpText('after', '\nThe first step: sudo puzzlectl run -- COMMAND. All of it: man puzzlectl')
    .configureOutput(OUTPUT)
    .configureHelp(HELP)
    .exitOverride()
  addCommonOptions(program)
  for (const verb of verbs) program.addCommand(commandFor(verb, act))
  return program.addCommand(helpCommand(program))
}

/** `help` of one verb is what its `--help` says; of a word that is no verb, what that word alone would have been told. */
function helpCommand(program: Command): Command {
  return new Command('help')
    .argument('[verb...]')
    .summary('say what a verb does')
    .description('say what a verb does')
    .helpGroup('System')
    .configureOutput(OUTPUT)
    .exitOverride()
    .helpOption('-h, --help', 'say what it does')
    .action(async (words: readonly string[]) => {
      let command = program
      for (const word of words) {
        const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
        if (next === undefined && command.commands.length === 0)
          command.error(`error: ${command.name()} has no verb '${word}'`)
        if (next === undefined) await program.parseAsync([...words], { from: 'user' })
        command = next ?? command
      }
      command.outputHelp()
    })
}

/** Words of other tools for what we call otherwise. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ...{ list: 'ls', ps: 'ls', status: 'ls', branches: 'ls', inspect: 'show', log: 'logs', journal: 'logs' },
  ...{ rm: 'discard', remove: 'discard', delete: 'discard', kill: 'signal', stop: 'signal', start: 'run' },
  ...{ pause: 'freeze', unpause: 'thaw', accept: 'approve', merge: 'commit', undo: 'revert' },
  ...{ rollback: 'revert', rewind: 'revert', version: '--version', net: 'net test', prune: 'gc' },
}

/** One sentence out of what commander says of a wrong command line; words of the caller are shown as what they are. */
export function sentenceOf(text: string): string {
  const [first = '', guess] = text.replace(/^error: /, '').split(/\n(?=\(Did you mean)/)
  const unknown = /^unknown command '(.*)'$/s.exec(first.trim())?.[1] ?? ''
  const meant = /\(Did you mean (.*)\?\)/s.exec(guess ?? '')?.[1] ?? ELSEWHERE[unknown]
  const said = visibleLine(first.trim().replace(/\.$/, ''))
  return meant === undefined ? `${said}\n` : `${said}; did you mean ${visibleLine(meant)}?\n`
}

/** Who speaks is said as in every other error. */
const OUTPUT = {
  outputError: (text: string, print: (text: string) => void): void => print(`puzzlectl: ${sentenceOf(text)}`),
}

/** Every verb has options; saying so on each line hides what differs. */
const HELP = {
  subcommandTerm: (command: Command): string =>
    [command.name(), ...command.registeredArguments.map(argumentText)].join(' '),
}

const argumentText = (one: Command['registeredArguments'][number]): string => {
  const name = `${one.name()}${one.variadic ? '...' : ''}`
  return one.required ? `<${name}>` : `[${name}]`
}

function commandFor(verb: Verb, act: Act, above: readonly string[] = []): Command {
  const words = [...above, verb.name]
  const command = new Command(verb.name)
    .summary(verb.summary)
    .description(verb.summary)
    .helpGroup(above.length === 0 ? verb.group : 'Verbs')
    .configureOutput(OUTPUT)
    .configureHelp(HELP)
    .exitOverride()
  command.showSuggestionAfterError().showHelpAfterError(`  hint: puzzlectl ${words.join(' ')} --help`)
  // As in `queue ls`.
  if (above.length > 0 && verb.name === 'list') command.alias('ls')
  // Behind an inner verb everything is that one's: a value that looks like an option of ours stays a value.
  if (verb.verbs !== undefined) command.enablePositionalOptions()
  for (const inner of verb.verbs ?? []) command.addCommand(commandFor(inner, act, words))
  if (verb.verbs !== undefined) command.addHelpCommand(false)
  if (verb.verbs !== undefined) return addCommonOptions(command)
  if (verb.args !== undefined) command.arguments(verb.args)
  for (const [flags, text, repeat] of verb.options ?? []) {
    const option = new Option(flags, text)
    if (repeat === 'repeat') option.argParser(append)
    command.addOption(option)
  }
  addCommonOptions(command)
  if (verb.passThrough === true) command.passThroughOptions()
  // Commander hands the arguments first, then the options, then the command itself.
  return command.action((...given: unknown[]) => {
    // An optional argument that was not given is undefined.
    const args = given
      .slice(0, -2)
      .flat()
      .filter((arg) => arg !== undefined)
    return act(verb, { words, args: args.map(String), options: command.optsWithGlobals() })
  })
}

/** Behind those of the verb: they are the same everywhere. */
function addCommonOptions(command: Command): Command {
  for (const [flags, text] of COMMON_OPTIONS)
    command.addOption(new Option(flags, text).helpGroup('Common options:'))
  return command.addHelpOption(new Option('-h, --help', 'say what it does').helpGroup('Common options:'))
}

const append = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
]
