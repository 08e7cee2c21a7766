// pure
import { Automaton } from '../lib/automaton.ts'
import { PuzzledError } from '../lib/errors.ts'

/** What a pattern is made of. Repetitions: a name's characters (`*`), anything (`**`), whole directories (`**` and a slash). */
type Part =
  | { kind: 'text'; text: string }
  | { kind: 'one' | 'name' | 'anything' | 'directories' }
  | { kind: 'choice'; of: Part[][] }

export interface Glob {
  test(text: string): boolean
}

/**
 * Globs over absolute targets: `*` and `?` stay within a component, `**` does not, `{a,b}` is a choice. A pattern
 * also matches everything below what it names: whoever refuses a directory refuses its content. A regular expression is
 * the fastest where there is one thing at most to try in several ways; with more of them a name can be made for which
 * it takes years, and those are walked in a time that is the text's times the pattern's.
 */
export function globExpression(pattern: string): Glob {
  const parts = parse(pattern)
  return waysOf(parts) > 1 ? automatonOf(parts) : expressionOf(parts)
}

/** More choices within choices than anybody writes; each is a call within a call here. */
const MOST_DEPTH = 64

/** Whether its choices stand within each other further than is read here. */
export function isTooDeep(pattern: string): boolean {
  let depth = 0
  for (const char of pattern) {
    if (char === '{') depth++
    else if (char === '}' && depth > 0) depth--
    if (depth > MOST_DEPTH) return true
  }
  return false
}

/** The end of a pattern closes what is open. */
function parse(pattern: string): Part[] {
  if (isTooDeep(pattern))
    throw new PuzzledError(
      'policy-invalid',
      `A pattern has more than ${MOST_DEPTH} choices within each other`,
    )
  const open: Part[][][] = [[[]]]
  const add = (part: Part): unknown => open.at(-1)?.at(-1)?.push(part)
  const close = (): void => {
    const of = open.pop()
    if (of !== undefined) add({ kind: 'choice', of })
  }
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] ?? ''
    if (char === '*' && pattern[at + 1] === '*') {
      // `/**/` also stands for a single slash: `/a/**/b` matches `/a/b`.
      const slash = pattern[at + 2] === '/' && (at === 0 || pattern[at - 1] === '/')
      add({ kind: slash ? 'directories' : 'anything' })
      at += slash ? 2 : 1
    } else if (char === '*') add({ kind: 'name' })
    else if (char === '?') add({ kind: 'one' })
    else if (char === '{') open.push([[]])
    else if (char === '}' && open.length > 1) close()
    else if (char === ',' && open.length > 1) open.at(-1)?.push([])
    else add({ kind: 'text', text: char })
  }
  while (open.length > 1) close()
  return open[0]?.[0] ?? []
}

/** At the very end everything matches at once. */
const waysOf = (parts: readonly Part[]): number =>
  parts.filter(({ kind }, at) =>
    kind === 'anything'
      ? at < parts.length - 1
      : kind === 'name' || kind === 'directories' || kind === 'choice',
  ).length + parts.reduce((sum, part) => sum + (part.kind === 'choice' ? waysInside(part.of) : 0), 0)

const waysInside = (of: readonly Part[][]): number => of.reduce((sum, parts) => sum + waysOf(parts), 0)

const expressionOf = (parts: readonly Part[]): RegExp => new RegExp(`^(?:${sourceOf(parts)})(?:/.*)?$`, 's')

const sourceOf = (parts: readonly Part[]): string => parts.map(sourceOfOne).join('')

function sourceOfOne(part: Part): string {
  switch (part.kind) {
    case 'text':
      return part.text.replace(/[\\^$.|+()[\]{}/]/g, '\\$&')
    case 'one':
      return '[^/]'
    case 'name':
      return '[^/]*'
    case 'anything':
      return '.*'
    case 'directories':
      return '(?:[^/]+/)*'
    default:
      return `(?:${part.of.map(sourceOf).join('|')})`
  }
}

function automatonOf(parts: readonly Part[]): Glob {
  const automaton = new Automaton()
  const end = automaton.end()
  const start = addAll(automaton, parts, automaton.below(end))
  return { test: automaton.matcher(start, end) }
}

const inName = (char: string): boolean => char !== '/'

const addAll = (automaton: Automaton, parts: readonly Part[], next: number): number =>
  parts.reduceRight((following, part) => addOne(automaton, part, following), next)

function addOne(automaton: Automaton, part: Part, next: number): number {
  switch (part.kind) {
    case 'text':
      return automaton.text(part.text, next)
    case 'one':
      return automaton.one(inName, next)
    case 'name':
      return automaton.many(inName, next)
    case 'anything':
      return automaton.anything(next)
    case 'directories':
      return automaton.names(next)
    default:
      return automaton.any(part.of.map((choice) => addAll(automaton, choice, next)))
  }
}
