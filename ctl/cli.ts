import { Command, CommanderError, Option } from 'commander'
import type { Engine, EngineReader } from '../daemon/contract/engine.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { connectEngine, connectReader } from './engine.ts'
import { askedEnvironment } from './environment-option.ts'
import { jsonText } from './json.ts'
import { commandWords } from './remote-words.ts'
import { errorJson, errorStatus, errorText } from './render/error.ts'
import { visibleLine } from './render/visible.ts'
import { foldText } from './render/width.ts'
import { outliveReaders, paintFor, write } from './terminal.ts'
import {
  COMMON_OPTIONS,
  listOption,
  type OptionValues,
  textOption,
  type Verb,
  type VerbContext,
} from './verb.ts'
import { VERBS } from './verbs.ts'
import { VERSION } from './version.ts'

const USAGE_STATUS = 2

/** Parses the command line, runs one verb, and turns whatever happens into an exit status. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  outliveReaders(process.stdout, process.stderr)
  let status = 0
  const program = newProgram(verbsFor(argv), async (verb, given) => {
    status = await runVerb(verb, given)
  })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return status
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Help and version end with 0. What was wrong has been printed, but not for programs.
    if (error.exitCode === 0) return 0
    if (wantsJson(argv)) await write(process.stdout, jsonText(errorJson(usageError(error.message))))
    return USAGE_STATUS
  }
}

/** Behind `--` are the words of somebody else. */
const wantsJson = (argv: readonly string[]): boolean =>
  argv.slice(0, argv.includes('--') ? argv.indexOf('--') : undefined).includes('--json')

const usageError = (message: string): PuzzledError => new PuzzledError('usage', sentenceOf(message).trim())

/** What was understood of the command line: the words of the verb, its arguments, its options. */
interface Given {
  words: readonly string[]
  args: readonly string[]
  options: OptionValues
}

type Act = (verb: Verb, given: Given) => Promise<void>

/** Building the commands of all verbs is a good part of a short one's time: where the first word is a verb, that one will do. */
function verbsFor([first]: readonly string[]): readonly Verb[] {
  const named = VERBS.filter(({ name }) => name === first)
  return named.length === 1 ? named : VERBS
}

function newProgram(verbs: readonly Verb[], act: Act): Command {
  const program = new Command('puzzlectl')
    .description('Run agents in branches: fork, explore, commit.')
    .version(`puzzlectl ${VERSION}`, '-V, --version')
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('  hint: puzzlectl --help lists the verbs')
    .addHelpCommand(
      new Command('help').argument('[verb]').summary('say what a verb does').helpGroup('System'),
    )
    .addHelpText('after', '\nThe first step: sudo puzzlectl run -- COMMAND. All of it: man puzzlectl')
    .configureOutput(OUTPUT)
    .configureHelp(HELP)
    .exitOverride()
  addCommonOptions(program)
  for (const verb of verbs) program.addCommand(commandFor(verb, act))
  return program
}

/** Words of other tools for what we call otherwise. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ...{ list: 'ls', ps: 'ls', status: 'ls', branches: 'ls', inspect: 'show', log: 'logs', journal: 'logs' },
  ...{ rm: 'discard', remove: 'discard', delete: 'discard', kill: 'signal', stop: 'signal', start: 'run' },
  ...{ pause: 'freeze', unpause: 'thaw', accept: 'approve', merge: 'commit', undo: 'revert' },
  ...{ rollback: 'revert', rewind: 'revert', version: '--version', net: 'net test', prune: 'gc' },
}

/** One sentence out of what commander says of a wrong command line; words of the caller are shown as what they are. */
function sentenceOf(text: string): string {
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

async function runVerb(verb: Verb, { words, args, options }: Given): Promise<number> {
  const json = options.json === true
  const stateDir = typeof options.stateDir === 'string' ? options.stateDir : null
  let engine: Promise<Engine> | undefined
  let reader: Promise<EngineReader> | undefined
  const context: VerbContext = {
    json,
    stateDir,
    paint: paintFor(process.stdout),
    paintErrors: paintFor(process.stderr),
    engine: () => {
      engine ??= connectEngine(stateDir)
      return engine
    },
    reader: () => {
      reader ??= connectReader(stateDir)
      return reader
    },
    print: (text, hang) => show(process.stdout, text, hang),
    printError: (text, hang) => show(process.stderr, text, hang),
  }
  try {
    const host = textOption(options, 'host')
    if (host !== null) return await runThere(context, host, verb, { words, args, options })
    const { run } = await verb.load()
    return await run(context, args, options)
  } catch (error) {
    await report(context, error)
    return errorStatus(error)
  } finally {
    await closeQuietly(context, engine ?? reader)
  }
}

const show = (stream: NodeJS.WriteStream, text: string, hang: number | undefined): Promise<void> =>
  write(stream, hang === undefined ? text : foldText(text, stream.columns, hang))

/** A variable that is passed by its name is that of the caller, not that of the other machine. */
async function runThere(
  context: VerbContext,
  host: string,
  verb: Verb,
  { words, args, options }: Given,
): Promise<number> {
  const { runRemote, sshFailed, SSH_FAILED } = await import('./remote.ts')
  const passed = Object.entries(askedEnvironment(listOption(options, 'env')))
  const env = passed.map(([name, value]) => `${name}=${value}`)
  const given = { ...startThere(verb, options), ...options, env }
  const status = await runRemote(host, commandWords(verb, words, args, given))
  // What ran there can end with the same, so it is said, not decided.
  if (status === SSH_FAILED) await report(context, sshFailed(host))
  return status
}

/** A login there begins in a home, which nobody means to fork: the base is said, and the command starts in it. */
function startThere(verb: Verb, options: OptionValues): OptionValues {
  if (verb.name !== 'run') return {}
  const [base] = listOption(options, 'base')
  if (base !== undefined) return { cwd: base }
  throw new PuzzledError('usage', '--host needs --base: there is no current directory on another machine', {
    hint: 'Name one there: --base /home/me/project',
  })
}

async function report(context: VerbContext, error: unknown): Promise<void> {
  if (context.json) await context.print(jsonText(errorJson(error)))
  else await context.printError(errorText(error, context.paintErrors), 4)
}

/** An engine that never came up was reported already; one that cannot close is reported here. */
async function closeQuietly(context: VerbContext, engine: Promise<EngineReader> | undefined): Promise<void> {
  const open = await engine?.catch(() => undefined)
  try {
    await open?.close()
  } catch (error) {
    await context.printError(
      errorText(
        new PuzzledError('internal', 'Cannot close the store', { cause: error }),
        context.paintErrors,
      ),
    )
  }
}
