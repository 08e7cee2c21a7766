import { Command, CommanderError, Option } from 'commander'
import type { Engine, EngineReader } from '../daemon/contract/engine.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { connectEngine, connectReader } from './engine.ts'
import { errorJson, errorStatus, errorText } from './render/error.ts'
import { paintFor, write } from './terminal.ts'
import { COMMON_OPTIONS, type OptionValues, type Verb, type VerbContext } from './verb.ts'
import { VERBS } from './verbs.ts'
import { VERSION } from './version.ts'

const USAGE_STATUS = 2

/** Parses the command line, runs one verb, and turns whatever happens into an exit status. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  let status = 0
  const program = newProgram((verb, args, options) => {
    const pending = runVerb(verb, args, options)
    return pending.then((result) => {
      status = result
    })
  })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return status
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has printed what was wrong; help and version end with 0.
    return error.exitCode === 0 ? 0 : USAGE_STATUS
  }
}

type Act = (verb: Verb, args: readonly string[], options: OptionValues) => Promise<void>

function newProgram(act: Act): Command {
  const program = new Command('puzzlectl')
    .description('Run agents in branches: fork, explore, commit.')
    .version(`puzzlectl ${VERSION}`, '-V, --version')
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('(puzzlectl --help lists the verbs)')
    .exitOverride()
  addCommonOptions(program)
  for (const verb of VERBS) program.addCommand(commandFor(verb, act))
  return program
}

function commandFor(verb: Verb, act: Act): Command {
  const command = new Command(verb.name)
    .summary(verb.summary)
    .description(verb.summary)
    .helpGroup(verb.group)
    .exitOverride()
  command.showSuggestionAfterError().showHelpAfterError(`(puzzlectl ${verb.name} --help)`)
  addCommonOptions(command)
  for (const inner of verb.verbs ?? []) command.addCommand(commandFor(inner, act))
  if (verb.verbs !== undefined) return command
  if (verb.args !== undefined) command.arguments(verb.args)
  for (const [flags, text, repeat] of verb.options ?? []) {
    const option = new Option(flags, text)
    if (repeat === 'repeat') option.argParser(append)
    command.addOption(option)
  }
  if (verb.passThrough === true) command.passThroughOptions()
  // Commander hands the arguments first, then the options, then the command itself.
  return command.action((...given: unknown[]) =>
    act(verb, given.slice(0, -2).flat().map(String), command.optsWithGlobals()),
  )
}

function addCommonOptions(command: Command): void {
  for (const [flags, text] of COMMON_OPTIONS) command.option(flags, text)
}

const append = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
]

async function runVerb(verb: Verb, args: readonly string[], options: OptionValues): Promise<number> {
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
    print: (text) => write(process.stdout, text),
    printError: (text) => write(process.stderr, text),
  }
  try {
    const { run } = await verb.load()
    return await run(context, args, options)
  } catch (error) {
    await report(context, error)
    return errorStatus(error)
  } finally {
    await closeQuietly(context, engine ?? reader)
  }
}

async function report(context: VerbContext, error: unknown): Promise<void> {
  if (context.json) await context.print(`${JSON.stringify(errorJson(error))}\n`)
  else await context.printError(errorText(error, context.paintErrors))
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
