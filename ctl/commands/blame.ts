import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { jsonText } from '../json.ts'
import { provenanceText } from '../render/provenance.ts'
import { textOption, type VerbRun } from '../verb.ts'

/** Reads the log, not the file: it also answers for what was deleted. */
export const run: VerbRun = async (context, [path = ''], options) => {
  const { openAudit } = await import('../../daemon/inspect-audit.ts')
  const found = await openAudit(context.stateDir).blame(
    canonical(path),
    countOf(textOption(options, 'number')),
  )
  await context.print(context.json ? jsonText(found) : provenanceText(found, context.paint))
  return 0
}

/** Bases are on record under their real names. The last name may be gone, or be a link that was committed as one. */
function canonical(path: string): string {
  const absolute = resolve(path)
  for (let above = dirname(absolute), below = basename(absolute); ; ) {
    try {
      return join(realpathSync(above), below)
    } catch {
      // A directory that was removed since: the one above it is asked.
      if (above === dirname(above)) return absolute
      below = join(basename(above), below)
      above = dirname(above)
    }
  }
}

function countOf(text: string | null): number {
  if (text === null) return 5
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw new PuzzledError('usage', `--number ${text} is not a number between 1 and 9999`)
}
