import type { Changeset } from '../../daemon/contract/changeset.ts'
import type { EngineReader } from '../../daemon/contract/engine.ts'
import { hasContent, statLine, unifiedText } from '../render/changes.ts'
import type { Paint } from '../render/paint.ts'
import { visibleLine } from '../render/visible.ts'
import type { ReviewChoice, ReviewItem } from './items.ts'

/** Larger contents are named, not shown; a longer diff is shown in part until more is asked for. */
const SHOWN_BYTES = 1 << 20
const SHOWN_LINES = 40

export interface Person {
  key(): Promise<string | null>
  show(text: string): Promise<void>
}

const HELP = `  a  take this change             A  take this and all that follow
  r  leave it in the branch       R  leave this and all that follow
  b  back to the one before       v  show the whole diff
  q  quit; nothing is decided     ?  this help
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
  const answers: boolean[] = []
  for (let at = 0; at < items.length; ) {
    const item = items[at]
    if (item === undefined) break
    const diff = await diffOf(engine, id, changeset, item, paint)
    await person.show(`${headOf(changeset, item, paint)}${shortened(diff, paint)}`)
    const answer = await answerTo(person, `(${at + 1}/${items.length})`, diff, paint)
    if (answer === 'quit') return null
    if (answer === 'back') at = Math.max(0, at - 1)
    else {
      const count = answer.all ? items.length - at : 1
      for (let next = at; next < at + count; next++) answers[next] = answer.take
      at += count
    }
  }
  const chosen = (take: boolean) =>
    items.filter((_item, at) => answers[at] === take).map(({ change }) => change)
  return { taken: chosen(true), left: chosen(false) }
}

type Answer = 'quit' | 'back' | { take: boolean; all: boolean }

async function answerTo(person: Person, where: string, diff: string, paint: Paint): Promise<Answer> {
  for (;;) {
    await person.show(paint.bold(`${where} Take this change [a,r,A,R,b,v,q,?]? `))
    const key = await person.key()
    await person.show(`${key === null || key < ' ' ? '' : visibleLine(key)}\n`)
    if (key === null || key === 'q') return 'quit'
    if (key === 'b') return 'back'
    if (key === 'a' || key === 'y') return { take: true, all: false }
    if (key === 'r' || key === 'n') return { take: false, all: false }
    if (key === 'A' || key === 'R') return { take: key === 'A', all: true }
    if (key === 'v') await person.show(diff)
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

async function diffOf(
  engine: EngineReader,
  id: string,
  changeset: Changeset,
  { change }: ReviewItem,
  paint: Paint,
): Promise<string> {
  if (!hasContent(change)) return ''
  return unifiedText(
    changeset,
    change,
    await engine.content(id, change.base, change.path, SHOWN_BYTES),
    paint,
  )
}

function shortened(diff: string, paint: Paint): string {
  const lines = diff.split('\n')
  if (lines.length <= SHOWN_LINES + 1) return diff
  const more = lines.length - SHOWN_LINES - 1
  return `${lines.slice(0, SHOWN_LINES).join('\n')}\n${paint.yellow(`… ${more} more lines are not shown (v shows them)`)}\n`
}
