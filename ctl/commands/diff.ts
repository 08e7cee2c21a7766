import { type Change, type Changeset, isEcho } from '../../daemon/contract/changeset.ts'
import type { EngineReader } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { jsonText } from '../json.ts'
import { openPager } from '../pager.ts'
import { tellProgress, withProgress } from '../progress.ts'
import { changesText } from '../render/banner.ts'
import { changesetJson, hasContent, pathText, requestLine, statLine, unifiedText } from '../render/changes.ts'
import { flagOption, type VerbContext, type VerbRun } from '../verb.ts'
import { printGitPatch } from './git-patch.ts'

/** Larger contents are named, not shown: nobody reads them in a terminal, and the daemon must not carry them. */
const SHOWN_BYTES = 1 << 20

export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.reader()
  const patch = flagOption(options, 'patch')
  if (patch && (flagOption(options, 'stat') || flagOption(options, 'nameOnly')))
    throw new PuzzledError(
      'usage',
      '--patch, --stat and --name-only are three ways to show the same: choose one',
    )
  const whole = await withProgress('comparing', engine.changes(id))
  if (context.json) {
    await context.print(jsonText(changesetJson(whole)))
    return 0
  }
  if (patch) return printGitPatch(context, engine, id, whole)
  const changeset = { ...whole, changes: whole.changes.filter((change) => !isEcho(change)) }
  const pager = openPager(context)
  try {
    if (flagOption(options, 'nameOnly')) await printNames(pager.print, changeset)
    else if (flagOption(options, 'stat')) await printStat(pager.print, changeset, context)
    else {
      const patch = () => printPatch(pager.print, engine, id, changeset, context)
      // At a terminal the text itself shows how far it is.
      await (process.stdout.isTTY === true ? patch() : withProgress('comparing', patch))
    }
  } finally {
    await pager.close()
  }
  return 0
}

type Print = (text: string) => Promise<void>

async function printNames(print: Print, changeset: Changeset): Promise<void> {
  for (const change of changeset.changes) await print(`${pathText(changeset, change)}\n`)
}

async function printStat(print: Print, changeset: Changeset, { paint }: VerbContext): Promise<void> {
  for (const change of changeset.changes) await print(`${statLine(changeset, change, paint)}\n`)
  for (const request of changeset.requests) await print(requestLine(request))
  await print(`${changesText({ totals: changeset.totals, requests: changeset.requests.length })}\n`)
}

async function printPatch(
  print: Print,
  engine: EngineReader,
  id: string,
  changeset: Changeset,
  { paint }: VerbContext,
): Promise<void> {
  for (const [done, change] of changeset.changes.entries()) {
    tellProgress(done, changeset.changes.length)
    await print(`${statLine(changeset, change, paint)}\n`)
    if (hasContent(change)) await print(await patchOf(engine, id, changeset, change, paint))
  }
  for (const request of changeset.requests) await print(requestLine(request))
}

async function patchOf(
  engine: EngineReader,
  id: string,
  changeset: Changeset,
  change: Change,
  paint: VerbContext['paint'],
): Promise<string> {
  return unifiedText(
    changeset,
    change,
    await engine.content(id, change.base, change.path, SHOWN_BYTES),
    paint,
  )
}
