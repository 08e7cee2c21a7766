import { jsonText } from '../json.ts'
import { textOption, type VerbRun } from '../verb.ts'

/** What the daemon counts: for a look without a collector, and to see whether a collector could. */
export const run: VerbRun = async (context, _args, options) => {
  const { readMetrics, samplesOf } = await import('../../daemon/read-metrics.ts')
  const text = await readMetrics(textOption(options, 'socket'))
  await context.print(context.json ? jsonText(samplesOf(text)) : text)
  return 0
}
