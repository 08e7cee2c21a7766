import { CommanderError } from 'commander'
import type { Engine, EngineReader } from '../daemon/contract/engine.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { type Given, newProgram, sentenceOf, verbsFor } from './command-line.ts'
import { connectEngine, connectReader } from './engine.ts'
import { askedEnvironment } from './environment-option.ts'
import { jsonText } from './json.ts'
import { refuseLostBytes } from './lost-bytes.ts'
import { commandWords } from './remote-words.ts'
import { errorJson, errorStatus, errorText } from './render/error.ts'
import { foldText } from './render/width.ts'
import { outliveReaders, paintFor, write } from './terminal.ts'
import { listOption, type OptionValues, textOption, type Verb, type VerbContext } from './verb.ts'

const USAGE_STATUS = 2

/** Parses the command line, runs one verb, and turns whatever happens into an exit status. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  outliveReaders(process.stdout, process.stderr)
  let status = 0
  const program = newProgram(verbsFor(argv), async (verb, given) => {
    status = await runVerb(verb, given, argv)
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

async function runVerb(
  verb: Verb,
  { words, args, options }: Given,
  argv: readonly string[],
): Promise<number> {
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
    refuseLostBytes(argv)
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

const show = (
  stream: NodeJS.WriteStream,
  text: string | Uint8Array,
  hang: number | undefined,
): Promise<void> =>
  write(stream, hang === undefined || typeof text !== 'string' ? text : foldText(text, stream.columns, hang))

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

const arrives = (printed: Promise<void>): Promise<boolean> =>
  printed.then(
    () => true,
    () => false,
  )

async function report(context: VerbContext, error: unknown): Promise<void> {
  // Where there is no space for the document either, a person is told.
  if (context.json && (await arrives(context.print(jsonText(errorJson(error)))))) return
  // Where nobody can be told, the status is what is left to say.
  await arrives(context.printError(errorText(error, context.paintErrors), 4))
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
