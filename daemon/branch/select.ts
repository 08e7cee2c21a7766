// pure
import { Buffer } from 'node:buffer'
import { exactPattern, showBytes } from '../contract/bytes.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import type { Selection } from '../contract/engine.ts'
import { Automaton } from '../lib/automaton.ts'
import { PuzzledError } from '../lib/errors.ts'
import { changesAbove, goesAsWhole, leaveWhatDepends, mustComeFirst } from './change-order.ts'
import { sealChangeset } from './changeset.ts'
import { SortedChanges } from './sorted-changes.ts'

/**
 * A part of a changeset: what `only` names (everything, when it is empty) without what `except` names. The part is a
 * changeset with its own digest and is judged again. It is closed so that it can be landed: a new file brings the new
 * directories above it, a directory that goes or is replaced brings everything below it, and names of one inode stay
 * together. What is excepted is not brought: what would need it stays behind as well.
 */
export function selectChanges(changeset: Changeset, selection: Selection): Changeset {
  const only = selection.only.map((pattern) => globMatcher(pattern))
  const except = selection.except.map((pattern) => globMatcher(pattern))
  const matches = (change: Change, globs: readonly Matcher[]): boolean =>
    globs.some((glob) => glob(change.path, changeset.bases[change.base] ?? ''))
  const groups = groupsOf(changeset.changes)
  const left = new Set(changeset.changes.filter((change) => matches(change, except)))
  leave(changeset.changes, left, groups)
  const wanted = new Set(
    changeset.changes.filter((change) => !left.has(change) && (only.length === 0 || matches(change, only))),
  )
  close(changeset.changes, wanted, groups)
  const changes = changeset.changes.filter((change) => wanted.has(change))
  if (changes.length === 0)
    throw new PuzzledError('usage', 'The selection matches no change of the branch', {
      hint: 'Patterns are globs over paths below the base, as `puzzlectl diff` shows them: src/**, *.md',
    })
  return sealChangeset({ bases: changeset.bases, changes, requests: changeset.requests })
}

/** Adds what must land together with something wanted, until nothing is missing. */
function close(changes: readonly Change[], wanted: Set<Change>, groups: Groups): void {
  const sorted = new SortedChanges(changes)
  const queue = [...wanted]
  const want = (change: Change): void => {
    if (wanted.has(change)) return
    wanted.add(change)
    queue.push(change)
  }
  for (let change = queue.pop(); change !== undefined; change = queue.pop()) {
    for (const above of changesAbove(sorted, change)) if (mustComeFirst(above, change)) want(above)
    for (const member of namesOf(groups, change)) want(member)
    if (goesAsWhole(change)) for (const other of insideOf(change, changes)) want(other)
  }
}

/** The same for what is excepted: it never lands, whatever else was chosen, and nothing that cannot land without it. */
function leave(changes: readonly Change[], left: Set<Change>, groups: Groups): void {
  for (let before = -1; before !== left.size; ) {
    before = left.size
    for (const change of [...left]) for (const member of namesOf(groups, change)) left.add(member)
    leaveWhatDepends(changes, left)
  }
}

/** The names of one inode, by number. */
type Groups = ReadonlyMap<number, readonly Change[]>

function groupsOf(changes: readonly Change[]): Groups {
  const groups = new Map<number, Change[]>()
  for (const change of changes) {
    if (change.hardlink === undefined) continue
    const names = groups.get(change.hardlink)
    if (names === undefined) groups.set(change.hardlink, [change])
    else names.push(change)
  }
  return groups
}

const namesOf = (groups: Groups, { hardlink }: Change): readonly Change[] =>
  hardlink === undefined ? [] : (groups.get(hardlink) ?? [])

/** In canonical order everything below a directory stands together, behind names like `dir-x`. */
function insideOf(directory: Change, changes: readonly Change[]): readonly Change[] {
  const prefix = Buffer.concat([directory.path, Buffer.from('/')])
  const isBefore = (change: Change): boolean =>
    change.base < directory.base ||
    (change.base === directory.base && Buffer.compare(change.path, prefix) < 0)
  let start = 0
  let end = changes.length
  while (start < end) {
    const middle = Math.floor((start + end) / 2)
    const change = changes[middle]
    if (change !== undefined && isBefore(change)) start = middle + 1
    else end = middle
  }
  let stop = start
  const isInside = (change: Change | undefined): boolean =>
    change?.base === directory.base &&
    Buffer.compare(Buffer.from(change.path.subarray(0, prefix.length)), prefix) === 0
  while (isInside(changes[stop])) stop++
  return changes.slice(start, stop)
}

type Matcher = (path: Uint8Array, base: string) => boolean

/**
 * Globs as people know them: `*` and `?` within a name, `**` across names, `[abc]`, `{a,b}`. A pattern without a slash
 * matches the name anywhere; a directory's pattern matches everything below it; one that begins with `/` is matched
 * against the absolute path. Bytes that are not UTF-8 are written as they are shown: `\xff`. `=` in front of an absolute path
 * means exactly that path: nothing in it is special, and nothing below it is meant.
 */
export function globMatcher(pattern: string): Matcher {
  if (pattern.startsWith('=/')) return (path, base) => exactPattern(base, path) === pattern
  if (pattern.length > MOST_LETTERS)
    throw new PuzzledError('usage', `A pattern has at most ${MOST_LETTERS} characters`)
  const absolute = pattern.startsWith('/')
  const trimmed = pattern.replace(/^\.\//, '').replace(/\/+$/, '')
  const automaton = new Automaton()
  const end = automaton.end()
  const named = addGlob(automaton, trimmed, automaton.below(end))
  const start = trimmed.includes('/') ? named : automaton.directories(named)
  const matches = automaton.matcher(start, end)
  return (path, base) => {
    const shown = showBytes(Buffer.from(path))
    return matches(absolute ? `${base}/${shown}` : shown)
  }
}

const MOST_LETTERS = 1024
const TOKEN = /\*\*\/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}|\\x[0-9a-f]{2}|[\s\S]/g

const inName = (char: string): boolean => char !== '/'

function addGlob(automaton: Automaton, glob: string, next: number): number {
  return (glob.match(TOKEN) ?? []).reduceRight((following, token) => {
    if (token === '**/') return automaton.directories(following)
    if (token === '**') return automaton.anything(following)
    if (token === '*') return automaton.many(inName, following)
    if (token === '?') return automaton.one(inName, following)
    if (token.length > 1 && token.startsWith('[')) return automaton.one(classOf(token), following)
    if (token.length > 1 && token.startsWith('{')) {
      const choices = token.slice(1, -1).split(',')
      return automaton.any(choices.map((choice) => addGlob(automaton, choice, following)))
    }
    return automaton.text(token, following)
  }, next)
}

function classOf(token: string): (char: string) => boolean {
  const inner = token.slice(1, -1)
  const negated = inner.startsWith('!')
  const escaped = (negated ? inner.slice(1) : inner).replace(/[\\\]^[]/g, '\\$&')
  try {
    const expression = new RegExp(`[${negated ? '^/' : ''}${escaped}]`)
    return (char) => expression.test(char)
  } catch (cause) {
    throw new PuzzledError('usage', `"${token}" is no set of characters`, { cause })
  }
}
