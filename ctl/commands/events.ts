import type { Engine, EventFilter } from '../../daemon/contract/engine.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { jsonText } from '../json.ts'
import { visibleLine } from '../render/visible.ts'
import { flagOption, textOption, type VerbContext, type VerbRun } from '../verb.ts'

/** What happened last, one line each; with `--follow` what happens from then on, until it is interrupted. */
export const run: VerbRun = async (context, _args, options) => {
  const engine = await context.engine()
  const asked = textOption(options, 'branch')
  const filter = { branch: asked === null ? null : (await engine.show(asked)).id }
  const show = (event: PuzzledEvent): Promise<void> =>
    context.print(context.json ? jsonText(event) : eventLine(event, context))
  if (flagOption(options, 'follow')) await follow(engine, filter, show)
  else {
    const kept = await engine.recentEvents(filter)
    for (const event of kept) await show(event)
    if (kept.length === 0) await context.printError(NOTHING_KEPT, 2)
  }
  return 0
}

const NOTHING_KEPT =
  'No events are kept here. --follow shows what happens; puzzlectl audit trace BRANCH shows what is on record.\n'

/** Listening begins before the kept ones are asked for, so none is missed; what is in both is shown once. */
async function follow(
  engine: Engine,
  filter: EventFilter,
  show: (event: PuzzledEvent) => Promise<void>,
): Promise<void> {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort())
  // A reader that closed the pipe has seen enough.
  process.stdout.on('error', () => stop.abort())
  const coming = engine.events(filter, stop.signal)[Symbol.asyncIterator]()
  let next = coming.next()
  const shown = new Set<string>()
  for (const event of await engine.recentEvents(filter)) {
    shown.add(jsonText(event))
    await show(event)
  }
  for (let step = await next; step.done !== true; step = await next) {
    if (!shown.delete(jsonText(step.value))) await show(step.value)
    next = coming.next()
  }
}

function eventLine(event: PuzzledEvent, { paint }: VerbContext): string {
  const { kind, branch, time, ...facts } = event
  const rest = Object.entries(facts).map(([name, value]) => `${name}=${visibleLine(String(value))}`)
  return `${paint.dim(time)} ${branch} ${paint.bold(kind)} ${rest.join(' ')}\n`
}
