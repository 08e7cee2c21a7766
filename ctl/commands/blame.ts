import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { ToldProvenance } from '../../daemon/inspect-audit.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { connectDaemon } from '../engine.ts'
import { jsonText } from '../json.ts'
import { DETAILS_AT } from '../render/branches.ts'
import { provenanceText } from '../render/provenance.ts'
import { textOption, type VerbContext, type VerbRun } from '../verb.ts'

/** Reads the log, not the file: it also answers for what was deleted. */
export const run: VerbRun = async (context, [path = ''], options) => {
  const asked = [canonical(path), countOf(textOption(options, 'number'))] as const
  const found = (await askedOfDaemon(context, ...asked)) ?? (await readHere(context, ...asked))
  if (context.json) await context.print(jsonText(found))
  else await context.print(provenanceText(found, context.paint), DETAILS_AT)
  return 0
}

/** Who can read the log asks nobody: it also tells what the daemon would withhold, and without a daemon. */
async function askedOfDaemon(
  context: VerbContext,
  path: string,
  most: number,
): Promise<readonly ToldProvenance[] | null> {
  if (process.geteuid?.() === 0 || context.stateDir !== null) return null
  const daemon = await connectDaemon()
  if (daemon === null) return null
  try {
    return await daemon.blame(path, most)
  } finally {
    await daemon.close()
  }
}

async function readHere(
  context: VerbContext,
  path: string,
  most: number,
): Promise<readonly ToldProvenance[]> {
  const { openAudit } = await import('../../daemon/inspect-audit.ts')
  return (await openAudit(context.stateDir)).blame(path, most)
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
