import type { Changeset } from '../../daemon/contract/changeset.ts'
import type { Engine, Outcome, Selection } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { jsonText } from '../json.ts'
import { Keyboard } from '../keys.ts'
import { withProgress } from '../progress.ts'
import { BANNER_HANG, bannerId, bannerText, changesText, summaryText } from '../render/banner.ts'
import { branchDetails, DETAILS_AT } from '../render/branches.ts'
import { requestLine } from '../render/changes.ts'
import { requester } from '../requester.ts'
import { type ReviewChoice, reviewItems, selectionOfChoice } from '../review/items.ts'
import { askAboutAll, type Person } from '../review/questions.ts'
import { flagOption, type VerbContext, type VerbRun } from '../verb.ts'
import { decisionStatus, showOutcome } from './outcome.ts'

/** Has a branch judged again and asks a person about each change; ends in one decision about what was taken. */
export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.engine()
  const record = await engine.show(id)
  const judgeOnly = context.json || flagOption(options, 'judge')
  if (!judgeOnly && !(process.stdin.isTTY === true && process.stdout.isTTY === true))
    throw new PuzzledError('usage', 'A review asks questions, and here is no terminal to ask them at', {
      hint: `To have it judged without questions: puzzlectl review --judge ${id}; to decide: puzzlectl approve ${id}`,
    })
  const outcome = await withProgress('judging', engine.review(record.id))
  if (context.json) await context.print(jsonText(outcome))
  else if (judgeOnly)
    await context.print(branchDetails(await engine.show(record.id), Date.now(), context.paint), DETAILS_AT)
  else await context.print(summaryText(outcome, context.paint), BANNER_HANG)
  return judgeOnly ? decisionStatus(outcome) : reviewAtTerminal(context, engine, outcome)
}

async function reviewAtTerminal(context: VerbContext, engine: Engine, outcome: Outcome): Promise<number> {
  const changeset = await withProgress('comparing', engine.changes(outcome.branch))
  if (changeset.digest !== outcome.digest)
    throw new PuzzledError('changed-since-review', `Branch ${outcome.branch} changes while it is reviewed`, {
      hint: 'Is a command running in it? puzzlectl ls',
    })
  const items = reviewItems(changeset, outcome.verdict)
  const keyboard = new Keyboard()
  const person: Person = { key: () => keyboard.key(), show: (text, hang) => context.print(text, hang) }
  try {
    await showRequests(context, changeset)
    const choice = await askAboutAll(person, engine, outcome.branch, { changeset, items }, context.paint)
    if (choice === null) return await leave(context, outcome)
    return await decide(context, engine, keyboard, { outcome, changeset, choice })
  } finally {
    keyboard.close()
  }
}

async function showRequests(context: VerbContext, { requests }: Changeset): Promise<void> {
  for (const request of requests) await context.print(requestLine(request))
  if (requests.length > 0)
    await context.print(
      context.paint.yellow(
        'These requests are sent with whatever is approved; puzzlectl queue drop leaves one out.\n',
      ),
    )
}

async function leave(context: VerbContext, outcome: Outcome): Promise<number> {
  await context.print('Nothing was decided.\n')
  return decisionStatus(outcome)
}

interface Reviewed {
  outcome: Outcome
  changeset: Changeset
  choice: ReviewChoice
}

async function decide(
  context: VerbContext,
  engine: Engine,
  keyboard: Keyboard,
  reviewed: Reviewed,
): Promise<number> {
  const { outcome, changeset, choice } = reviewed
  const id = outcome.branch
  if (choice.taken.length === 0 && choice.left.length > 0) {
    if (!(await agrees(context, keyboard, 'Nothing is taken. Reject the branch and throw it away')))
      return leave(context, outcome)
    const { id: gone } = await engine.reject(id, await reasonOf(context, keyboard))
    await context.print(`Branch ${gone} is rejected; nothing of it was committed.\n`)
    return 0
  }
  const selection = selectionOfChoice(changeset, choice)
  if (choice.parts.length > 0) return decidePieces(context, engine, keyboard, { ...reviewed, selection })
  // Directories that come along make the part larger than what was asked about: it is shown as it would land.
  const part = selection === null ? changeset : await engine.changes(id, selection)
  await context.print(`\n${partText(context, part, outcome, choice)}`)
  if (!(await agrees(context, keyboard, 'Approve and commit'))) return leave(context, outcome)
  return approve(context, engine, keyboard, { id, digest: part.digest, selection })
}

/** Single pieces of files become a branch of their own, which is judged; the decision is about that one. */
async function decidePieces(
  context: VerbContext,
  engine: Engine,
  keyboard: Keyboard,
  { outcome, changeset, choice, selection }: Reviewed & { selection: Selection | null },
): Promise<number> {
  const asked = { digest: changeset.digest, selection, parts: choice.parts }
  const picked = await withProgress('picking', engine.pick(outcome.branch, asked))
  await context.print(`\n${bannerText(picked, context.paint)}`, BANNER_HANG)
  if (picked.conflicts.length > 0 || picked.digest === null) return decisionStatus(picked)
  await context.print(
    context.paint.dim(`digest ${picked.digest}; the rest stays in branch ${bannerId(outcome)}\n`),
  )
  if (!(await agrees(context, keyboard, 'Approve and commit these pieces'))) {
    await context.print(`Nothing was committed; what you picked is held as branch ${bannerId(picked)}.\n`)
    return decisionStatus(picked)
  }
  return approve(context, engine, keyboard, { id: picked.branch, digest: picked.digest, selection: null })
}

function partText(context: VerbContext, part: Changeset, outcome: Outcome, { left }: ReviewChoice): string {
  const what = changesText({ totals: part.totals, requests: part.requests.length })
  const rest = left.length === 0 ? '' : `; ${left.length} left in branch ${bannerId(outcome)}`
  return `${context.paint.bold('Taken:')} ${what}${rest}\n${context.paint.dim(`digest ${part.digest}`)}\n`
}

async function approve(
  context: VerbContext,
  engine: Engine,
  keyboard: Keyboard,
  { id, digest, selection }: { id: string; digest: string; selection: Selection | null },
): Promise<number> {
  const why = await reasonOf(context, keyboard)
  return showOutcome(
    context,
    await withProgress('committing', engine.approve(id, { by: requester(), digest, selection, why })),
  )
}

async function agrees(context: VerbContext, keyboard: Keyboard, question: string): Promise<boolean> {
  await context.print(`${context.paint.bold(`${question} [y/N]?`)} `)
  const key = await keyboard.key()
  await context.print(`${key === 'y' || key === 'Y' ? key : 'n'}\n`)
  return key === 'y' || key === 'Y'
}

async function reasonOf(context: VerbContext, keyboard: Keyboard): Promise<string> {
  await context.print('Why (Enter: no reason): ')
  return keyboard.line((text) => context.print(text))
}
