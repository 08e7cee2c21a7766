// pure
import { Buffer } from 'node:buffer'
import { exactPattern, showBytes } from '../contract/bytes.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import type { Selection } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { sealChangeset } from './changeset.ts'

/**
 * A part of a changeset: what `only` names (everything, when it is empty) without what `except` names. The part is a
 * changeset with its own digest and is judged again. It is closed so that it can be landed: a new file brings the new
 * directories above it, a directory that goes or is replaced brings everything below it, and names of one inode stay
 * together.
 */
export function selectChanges(changeset: Changeset, selection: Selection): Changeset {
  const only = selection.only.map((pattern) => globMatcher(pattern))
  const except = selection.except.map((pattern) => globMatcher(pattern))
  const matches = (change: Change, globs: readonly Matcher[]): boolean =>
    globs.some((glob) => glob(change.path, changeset.bases[change.base] ?? ''))
  const wanted = new Set(
    changeset.changes.filter(
      (change) => (only.length === 0 || matches(change, only)) && !matches(change, except),
    ),
  )
  close(changeset.changes, wanted)
  const changes = changeset.changes.filter((change) => wanted.has(change))
  if (changes.length === 0)
    throw new PuzzledError('usage', 'The selection matches no change of the branch', {
      hint: 'Patterns are globs over paths below the base, as `puzzlectl diff` shows them: src/**, *.md',
    })
  return sealChangeset({ bases: changeset.bases, changes, requests: changeset.requests })
}

/** Adds what must land together with something wanted, until nothing is missing. */
function close(changes: readonly Change[], wanted: Set<Change>): void {
  const byPath = new Map(changes.map((change) => [keyOf(change.base, change.path), change]))
  const groups = new Map<number, Change[]>()
  for (const change of changes)
    if (change.hardlink !== undefined)
      groups.set(change.hardlink, [...(groups.get(change.hardlink) ?? []), change])
  const queue = [...wanted]
  const want = (change: Change | undefined): void => {
    if (change === undefined || wanted.has(change)) return
    wanted.add(change)
    queue.push(change)
  }
  for (let change = queue.pop(); change !== undefined; change = queue.pop()) {
    for (const above of parents(change.path)) {
      const parent = byPath.get(keyOf(change.base, above))
      if (parent !== undefined && mustComeFirst(parent, change)) want(parent)
    }
    if (change.hardlink !== undefined) for (const member of groups.get(change.hardlink) ?? []) want(member)
    if (goesAsWhole(change)) for (const other of insideOf(change, changes)) want(other)
  }
}

const keyOf = (base: number, path: Uint8Array): string => `${base}:${Buffer.from(path).toString('latin1')}`

/** Every directory above a path, the nearest first, without the base itself. */
function parents(path: Uint8Array): Buffer[] {
  const found: Buffer[] = []
  const bytes = Buffer.from(path)
  for (let slash = bytes.lastIndexOf(0x2f); slash > 0; slash = bytes.lastIndexOf(0x2f, slash - 1))
    found.push(bytes.subarray(0, slash))
  return found
}

/** A directory that is made, or a node whose type makes room for, or takes away, what is below it. */
const mustComeFirst = (parent: Change, child: Change): boolean =>
  parent.kind === 'add' || parent.kind === 'replace' || (parent.kind === 'delete' && child.kind !== 'delete')

/** A directory of the base that is no directory any more cannot leave anything behind. */
const goesAsWhole = (change: Change): boolean => change.old?.type === 'dir' && change.new?.type !== 'dir'

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
  const absolute = pattern.startsWith('/')
  const trimmed = pattern.replace(/^\.\//, '').replace(/\/+$/, '')
  const anywhere = !trimmed.includes('/')
  const expression = new RegExp(`^${anywhere ? '(?:.*/)?' : ''}${globSource(trimmed)}(?:/.*)?$`, 's')
  return (path, base) => {
    const shown = showBytes(Buffer.from(path))
    return expression.test(absolute ? `${base}/${shown}` : shown)
  }
}

const TOKEN = /\*\*\/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}|\\x[0-9a-f]{2}|[\s\S]/g

/** No repetition is nested in another: the work is bounded by the pattern's stars, which the user wrote. */
function globSource(glob: string): string {
  return (glob.match(TOKEN) ?? [])
    .map((token) => {
      if (token === '**/') return '(?:.*/)?'
      if (token === '**') return '.*'
      if (token === '*') return '[^/]*'
      if (token === '?') return '[^/]'
      if (token.length > 1 && token.startsWith('[')) return `[${classSource(token.slice(1, -1))}]`
      if (token.length > 1 && token.startsWith('{'))
        return `(?:${token.slice(1, -1).split(',').map(globSource).join('|')})`
      return token.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
    })
    .join('')
}

const classSource = (inner: string): string => {
  const negated = inner.startsWith('!')
  const escaped = (negated ? inner.slice(1) : inner).replace(/[\\\]^[]/g, '\\$&')
  return negated ? `^/${escaped}` : escaped
}
