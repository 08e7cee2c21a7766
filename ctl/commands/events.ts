import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { jsonText } from '../json.ts'
import { visibleLine } from '../render/visible.ts'
import { textOption, type VerbContext, type VerbRun } from '../verb.ts'

/** Prints what happens from now on, one line each, until it is interrupted. */
export const run: VerbRun = async (context, _args, options) => {
  const engine = await context.engine()
  const asked = textOption(options, 'branch')
  const branch = asked === null ? null : (await engine.show(asked)).id
  const stop = new AbortController()
  const end = (): void => stop.abort()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end)
  for await (const event of engine.events({ branch }, stop.signal))
    await context.print(context.json ? jsonText(event) : eventLine(event, context))
  return 0
}

function eventLine(event: PuzzledEvent, { paint }: VerbContext): string {
  const { kind, branch, time, ...facts } = event
  const rest = Object.entries(facts).map(([name, value]) => `${name}=${visibleLine(String(value))}`)
  return `${paint.dim(time)} ${branch} ${paint.bold(kind)} ${rest.join(' ')}\n`
}
