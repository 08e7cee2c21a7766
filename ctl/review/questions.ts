import type { Changeset } from '../../daemon/contract/changeset.ts'
import type { ContentPair, EngineReader, FilePart } from '../../daemon/contract/engine.ts'
import type { Hunk } from '../../daemon/lib/text-diff.ts'
import { hunksOf } from '../../daemon/lib/text-hunks.ts'
import { hasContent, hunkText, statLine, unifiedText } from '../render/changes.ts'
import type { Paint } from '../render/paint.ts'
import { visibleLine } from '../render/visible.ts'
import type { ReviewChoice, ReviewItem } from './items.ts'

/** Larger contents are named, not shown; a longer diff is shown in part until more is asked for. */
const SHOWN_BYTES = 1 << 20
const SHOWN_LINES = 40
const HEAD_HANG = 4

export interface Person {
  key(): Promise<string | null>
  /** With `hang`, what is wider than the screen goes on below, indented so far. */
  show(text: string, hang?: number): Promise<void>
}

const HELP = `  a  take this change             A  take this and all that follow
  r  leave it in the branch       R  leave this and all that follow
  s  take single pieces of it     v  show the whole diff
  b  back to the one before       q  quit; nothing is decided
`

/** Asks about one change after the other. Null: the person left, and nothing is decided. */
export async function askAboutAll(
  person: Person,
  engine: EngineReader,
  id: string,
  reviewed: { changeset: Changeset; items: readonly ReviewItem[] },
  paint: Paint,
): Promise<ReviewChoice | null> {
  const { changeset, items } = reviewed
  const answers: (boolean | FilePart)[] = []
  for (let at = 0; at < items.length; ) {
    const item = items[at]
    if (item === undefined) break
    const content = await contentOf(engine, id, item)
    const diff = content === null ? '' : unifiedText(changeset, item.change, content, paint)
    await person.show(headOf(changeset, item, paint), HEAD_HANG)
    await person.show(shortened(diff, paint))
    const pieces = piecesOf(item, content)
    const answer = await answerTo(person, { where: `(${at + 1}/${items.length})`, diff, pieces }, paint)
    if (answer === 'quit') return null
    if (answer === 'back') at = Math.max(0, at - 1)
    else if (answer === 'split') {
      const chosen = await askAboutPieces(person, pieces, paint)
      if (chosen === null) return null
      answers[at++] = partOf(item, chosen, pieces.length)
    } else {
      const count = answer.all ? items.length - at : 1
      for (let next = at; next < at + count; next++) answers[next] = answer.take
      at += count
    }
  }
  return {
    taken: items.filter((_item, at) => answers[at] !== false).map(({ change }) => change),
    left: items.filter((_item, at) => answers[at] === false).map(({ change }) => change),
    parts: answers.filter((answer) => typeof answer === 'object'),
  }
}

/** All of the pieces are the whole change, and none is none of it. */
function partOf({ change }: ReviewItem, chosen: readonly number[], of: number): boolean | FilePart {
  if (chosen.length === 0 || chosen.length === of) return chosen.length > 0
  return { base: change.base, path: change.path, hunks: chosen, of }
}

/** A file of which a piece can be taken alone: a plain one on both sides, with more than one piece. */
function piecesOf({ change }: ReviewItem, content: ContentPair | null): readonly Hunk[] {
  const plain = change.old?.type === 'file' && change.new?.type === 'file' && change.hardlink === undefined
  const { before = null, after = null } = content ?? {}
  if (!plain || before === null || after === null || change.findings.length > 0) return []
  const cut = [before, after].some(({ size, bytes }) => size > bytes.length)
  const hunks = cut ? null : hunksOf(before.bytes, after.bytes)
  return hunks !== null && hunks.length > 1 ? hunks : []
}

/** The pieces that are taken, by number; null when the person left. */
async function askAboutPieces(
  person: Person,
  pieces: readonly Hunk[],
  paint: Paint,
): Promise<readonly number[] | null> {
  const taken: number[] = []
  for (const [index, piece] of pieces.entries()) {
    await person.show(`\n${hunkText(piece, paint)}`)
    const take = await pieceAnswer(person, `piece ${index + 1} of ${pieces.length}`, paint)
    if (take === null) return null
    if (take) taken.push(index)
  }
  return taken
}

async function pieceAnswer(person: Person, where: string, paint: Paint): Promise<boolean | null> {
  for (;;) {
    await person.show(paint.bold(`${where}: take it [a,r,q]? `))
    const key = await person.key()
    await person.show(`${echoOf(key)}\n`)
    if (key === null || key === 'q') return null
    if (key === 'a' || key === 'y') return true
    if (key === 'r' || key === 'n') return false
  }
}

const echoOf = (key: string | null): string => (key === null || key < ' ' ? '' : visibleLine(key))

type Answer = 'quit' | 'back' | 'split' | { take: boolean; all: boolean }

async function answerTo(
  person: Person,
  { where, diff, pieces }: { where: string; diff: string; pieces: readonly Hunk[] },
  paint: Paint,
): Promise<Answer> {
  const keys = pieces.length > 0 ? 'a,r,A,R,s,b,v,q,?' : 'a,r,A,R,b,v,q,?'
  for (;;) {
    await person.show(paint.bold(`${where} Take this change [${keys}]? `))
    const key = await person.key()
    await person.show(`${echoOf(key)}\n`)
    if (key === null || key === 'q') return 'quit'
    if (key === 'b') return 'back'
    if (key === 'a' || key === 'y') return { take: true, all: false }
    if (key === 'r' || key === 'n') return { take: false, all: false }
    if (key === 'A' || key === 'R') return { take: key === 'A', all: true }
    if (key === 's' && pieces.length > 0) return 'split'
    if (key === 's') await person.show('It cannot be taken in pieces.\n')
    else if (key === 'v') await person.show(diff)
    else await person.show(HELP)
  }
}

function headOf(changeset: Changeset, { change, findings, below }: ReviewItem, paint: Paint): string {
  const lines = [statLine(changeset, change, paint)]
  if (below > 0) lines.push(`  with everything in it: ${below} more`)
  for (const { rule, severity, message, help } of findings) {
    lines.push(`  ${paint.yellow(rule)} [${severity}] ${visibleLine(message)}`)
    if (help !== undefined) lines.push(`    ${paint.dim(visibleLine(help))}`)
  }
  return `\n${lines.join('\n')}\n`
}

async function contentOf(
  engine: EngineReader,
  id: string,
  { change }: ReviewItem,
): Promise<ContentPair | null> {
  return hasContent(change) ? engine.content(id, change.base, change.path, SHOWN_BYTES) : null
}

function shortened(diff: string, paint: Paint): string {
  const lines = diff.split('\n')
  if (lines.length <= SHOWN_LINES + 1) return diff
  const more = lines.length - SHOWN_LINES - 1
  return `${lines.slice(0, SHOWN_LINES).join('\n')}\n${paint.yellow(`… ${more} more lines are not shown (v shows them)`)}\n`
}
