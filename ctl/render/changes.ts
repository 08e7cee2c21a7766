// pure
import { encodePath, showBytes } from '../../daemon/contract/bytes.ts'
import type { Change, Changeset, NodeState } from '../../daemon/contract/changeset.ts'
import type { ContentPair } from '../../daemon/contract/engine.ts'
import { type Hunk, hunkHeader, textDiff } from '../../daemon/lib/text-diff.ts'
import type { Paint } from './paint.ts'
import { bytesText } from './sizes.ts'
import { visibleLine, visibleText } from './visible.ts'

/** A path as people see it; with several bases it begins with the base. */
export function pathText(changeset: Pick<Changeset, 'bases'>, change: Pick<Change, 'base' | 'path'>): string {
  const shown = visibleLine(showBytes(Buffer.from(change.path)))
  const relative = shown === '' ? '.' : shown
  return changeset.bases.length === 1
    ? relative
    : `${visibleLine(changeset.bases[change.base] ?? '')}/${relative}`
}

const MARKS: Readonly<Record<Change['kind'], string>> = {
  add: '+',
  modify: '~',
  delete: '-',
  metadata: 'm',
  replace: '!',
}

/** One line: mark, path, and what else is worth a word. */
export function statLine(changeset: Changeset, change: Change, paint: Paint): string {
  const notes = [
    ...describe(change),
    ...change.findings.map((finding) => paint.red(visibleLine(finding.message))),
  ]
  const colour = change.kind === 'add' ? paint.green : change.kind === 'delete' ? paint.red : paint.yellow
  return `${colour(MARKS[change.kind])} ${pathText(changeset, change)}${notes.length === 0 ? '' : `  ${paint.dim(notes.join(', '))}`}`
}

function describe({ old, new: now }: Change): string[] {
  const notes: string[] = []
  if (now !== null) notes.push(...typeNotes(old, now))
  if (old !== null && now !== null && old.mode !== now.mode)
    notes.push(`mode ${octal(old.mode)} → ${octal(now.mode)}`)
  if (old === null && now !== null && now.type === 'file' && (now.mode & 0o111) !== 0)
    notes.push('executable')
  if (old !== null && now !== null && (old.uid !== now.uid || old.gid !== now.gid))
    notes.push(`owner ${old.uid}:${old.gid} → ${now.uid}:${now.gid}`)
  const attributes = now?.xattrs.map((entry) => visibleLine(entry.name)) ?? []
  if (attributes.length > 0) notes.push(`xattrs ${attributes.join(' ')}`)
  return notes
}

function typeNotes(old: NodeState | null, now: NodeState): string[] {
  const notes = old !== null && old.type !== now.type ? [`${old.type} → ${now.type}`] : []
  if (now.type === 'symlink') return [...notes, `→ ${visibleLine(showBytes(Buffer.from(now.link ?? [])))}`]
  if (now.type === 'dir') return [...notes, 'directory']
  return [...notes, bytesText(now.size)]
}

const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, '0')

/** Does a change have content worth comparing line by line? */
export const hasContent = ({ old, new: now }: Change): boolean =>
  (old?.type === 'file' || now?.type === 'file') && old?.sha256 !== now?.sha256

/** A request that would be sent; the agent chose all of its words. */
export const requestLine = ({ method, host, path, bytes }: Changeset['requests'][number]): string =>
  `> ${visibleLine(`${method} ${host}${path}`)} (${bytesText(bytes)})\n`

/** The unified diff of one change; contents that were cut are said to be. */
export function unifiedText(
  changeset: Changeset,
  change: Change,
  content: ContentPair,
  paint: Paint,
): string {
  // Over several bases it is the whole path, which `patch -p1` at the root understands.
  const path = pathText(changeset, change).replace(/^\//, '')
  // As git and diff write it: without the tab, patch(1) takes a name to end at its first blank.
  const name = path.includes(' ') ? `${path}\t` : path
  const lines = [
    paint.bold(`--- ${change.old === null ? '/dev/null' : `a/${name}`}`),
    paint.bold(`+++ ${change.new === null ? '/dev/null' : `b/${name}`}`),
  ]
  if (content.before?.withheld === true || content.after?.withheld === true)
    return `${lines.join('\n')}\n${paint.yellow('(not shown: the requester of the branch may not read it)')}\n`
  const cut = [content.before, content.after].some((side) => side !== null && side.size > side.bytes.length)
  if (cut) return `${lines.join('\n')}\n${paint.yellow('(too large to show)')}\n`
  const diff = textDiff(content.before?.bytes ?? EMPTY, content.after?.bytes ?? EMPTY)
  if (diff.kind === 'binary') lines.push(paint.yellow('(binary)'))
  if (diff.kind === 'too-different') lines.push(paint.yellow('(rewritten: almost every line differs)'))
  return `${lines.join('\n')}\n${diff.hunks.map((hunk) => hunkText(hunk, paint)).join('')}`
}

/** One piece of a diff, with what would deceive a reader made visible. */
export function hunkText(hunk: Hunk, paint: Paint): string {
  const mark = (shown: string): string => paint.inverse(shown)
  const lines = hunk.lines.map((line) => {
    const shown = visibleText(line, mark)
    return line.startsWith('+') ? paint.green(shown) : line.startsWith('-') ? paint.red(shown) : shown
  })
  return `${[paint.cyan(hunkHeader(hunk)), ...lines].join('\n')}\n`
}

const EMPTY = Buffer.alloc(0)

/** What programs get: the changeset with paths as text and, where that loses bytes, as base64 too. */
export function changesetJson(changeset: Changeset): unknown {
  const side = (state: NodeState | null): unknown =>
    state === null
      ? null
      : { ...state, ...(state.link === undefined ? {} : { link: encodePath(state.link) }) }
  return {
    ...changeset,
    changes: changeset.changes.map(({ path, base, kind, old, new: now, hardlink, identity, findings }) => ({
      ...encodePath(path),
      base,
      kind,
      findings,
      ...(hardlink === undefined ? {} : { hardlink }),
      ...(identity === undefined ? {} : { identity }),
      old: side(old),
      new: side(now),
    })),
  }
}
