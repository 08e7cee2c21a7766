import type { Outcome, RunRequest } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { parseBudgets } from '../budget-option.ts'
import { jsonText } from '../json.ts'
import { bannerText } from '../render/banner.ts'
import { errorText } from '../render/error.ts'
import { runStatus } from '../render/exit-status.ts'
import { requester } from '../requester.ts'
import { forwardSignals, relay, sessionStdio } from '../stdio.ts'
import { flagOption, listOption, type OptionValues, textOption, type VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, command, options) => {
  const request = requestOf(command, options)
  const engine = await context.engine()
  const session = await engine.run(request)
  if (flagOption(options, 'detach')) {
    await context.print(context.json ? jsonText({ branch: session.id }) : `${session.id}\n`)
    return 0
  }
  const outcome: Outcome = await forwardSignals(
    (name) => engine.signal(session.id, name),
    async () => {
      await relay(session)
      return engine.finish(session.id)
    },
    (error) => void context.printError(errorText(error, context.paintErrors)),
  )
  if (context.json) await context.print(jsonText(outcome))
  else await context.printError(bannerText(outcome, context.paintErrors))
  return runStatus(outcome, request.afterwards)
}

function requestOf(command: readonly string[], options: OptionValues): RunRequest {
  const cwd = process.cwd()
  const bases = listOption(options, 'base')
  const environment = Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
  return {
    bases: bases.length === 0 ? [cwd] : bases,
    profile: textOption(options, 'profile') ?? 'standard',
    name: textOption(options, 'name'),
    afterwards: afterwardsOf(textOption(options, 'then') ?? 'gate'),
    command,
    cwd,
    requester: requester(),
    budgets: parseBudgets(listOption(options, 'budget')),
    environment,
    setEnvironment: askedEnvironment(listOption(options, 'env')),
    stdio: flagOption(options, 'detach') ? { kind: 'pipes' } : sessionStdio(),
  }
}

function afterwardsOf(text: string): RunRequest['afterwards'] {
  if (text === 'gate' || text === 'hold' || text === 'discard') return text
  throw new PuzzledError('usage', `--then ${text} is not known`, { hint: 'Use gate, hold or discard.' })
}

/** `NAME=value` sets, `NAME` passes the caller's value; a name that the caller does not have is a mistake. */
function askedEnvironment(pairs: readonly string[]): Record<string, string> {
  const asked: Record<string, string> = {}
  for (const pair of pairs) {
    const cut = pair.indexOf('=')
    const name = cut < 0 ? pair : pair.slice(0, cut)
    const value = cut < 0 ? process.env[name] : pair.slice(cut + 1)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw new PuzzledError('usage', `"${name}" is not the name of a variable`)
    if (value === undefined)
      throw new PuzzledError('usage', `--env ${name}: there is no such variable here`, {
        hint: `Set it: --env ${name}=value`,
      })
    asked[name] = value
  }
  return asked
}
