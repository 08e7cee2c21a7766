import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { columnsText } from '../../render/columns.ts'
import { flagOption, listOption, textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, _args, options) => {
  const since = sinceOf(textOption(options, 'since') ?? '7d', Date.now())
  const { replayDecisions } = await import('../../../daemon/policy-tools.ts')
  const { stateDir } = context
  const rows = await replayDecisions({ since, policies: listOption(options, 'policy'), stateDir })
  const flipped = rows.filter(({ was, now }) => was !== now)
  if (context.json) await context.print(jsonText(rows))
  else {
    const cells = (flagOption(options, 'all') ? rows : flipped).map((row) => [
      row.at,
      row.branch,
      row.was,
      row.now ?? 'input gone',
      [...row.appeared.map((rule) => `+${rule}`), ...row.vanished.map((rule) => `-${rule}`)].join(' '),
    ])
    if (cells.length > 0)
      await context.print(columnsText(['TIME', 'BRANCH', 'WAS', 'NOW', 'RULES'], cells, context.paint))
    await context.print(`${rows.length} decisions, ${flipped.length} would be others\n`)
  }
  return 0
}

/** A time (`2026-01-31`, ISO) or an age (`36h`, `7d`). */
function sinceOf(text: string, now: number): Date {
  const [, amount = '', unit = ''] = /^(\d+)([mhd])$/.exec(text) ?? []
  const seconds = { m: 60, h: 3600, d: 86_400 }[unit]
  const date = seconds === undefined ? new Date(text) : new Date(now - Number(amount) * seconds * 1000)
  if (!Number.isNaN(date.getTime())) return date
  throw new PuzzledError(
    'usage',
    `--since ${JSON.stringify(text)}: expected a time or an age such as 36h or 7d`,
  )
}
