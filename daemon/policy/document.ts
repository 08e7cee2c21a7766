// pure
import { isAlias, isNode, isPair, LineCounter, parseDocument, visit } from 'yaml'
import type { ErrorCode } from '../contract/errors.ts'
import { PuzzledError } from '../lib/errors.ts'

export interface Place {
  file: string
  line: number
  column: number
}

export type DocumentPath = readonly (string | number)[]

/** A YAML document that remembers where each value and key stands. */
export interface SourceDocument {
  value: unknown
  file: string
  /** Where the value at this path is written; the nearest existing parent when it is absent. */
  place(path: DocumentPath): Place
  /** Where the key itself is written: what an unknown key's message points at. */
  keyPlace(path: DocumentPath, key: string): Place
}

export const showPlace = ({ file, line, column }: Place): string => `${file}:${line}:${column}`

/** Files of operators are small; anything bigger is a mistake or an attack on the parser. */
export const MAX_DOCUMENT_BYTES = 256 * 1024

/**
 * YAML 1.2 as data only: one document, no anchors, aliases, tags or merge keys, no duplicate keys. What a reader sees
 * on a line is what that line means.
 */
export function readDocument(text: string, file: string, code: ErrorCode): SourceDocument {
  const refuse = (place: Place, sentence: string): never => {
    throw new PuzzledError(code, `${showPlace(place)}: ${sentence}`, { data: { ...place } })
  }
  if (text.length > MAX_DOCUMENT_BYTES)
    refuse({ file, line: 1, column: 1 }, `found ${text.length} bytes, expected at most ${MAX_DOCUMENT_BYTES}`)
  const lines = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    lineCounter: lines,
    uniqueKeys: true,
    merge: false,
    prettyErrors: false,
    stringKeys: true,
    resolveKnownTags: false,
  })
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const problem = document.errors[0] ?? document.warnings[0]
  if (problem !== undefined) refuse(at(problem.pos[0]), `not readable as YAML 1.2: ${problem.message}`)
  visit(document, (_key, node) => {
    if (!isNode(node)) return
    const where = at(node.range?.[0] ?? 0)
    if (isAlias(node)) refuse(where, 'found an alias, expected the value itself')
    else if (node.anchor !== undefined) refuse(where, 'found an anchor, expected the value itself')
    else if (node.tag !== undefined) refuse(where, `found the tag "${node.tag}", expected a plain value`)
  })
  const start = (path: DocumentPath): Place => {
    for (let length = path.length; length >= 0; length--) {
      const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
      if (isNode(node) && node.range) return at(node.range[0])
    }
    return at(0)
  }
  return {
    value: document.toJS({ maxAliasCount: 0 }),
    file,
    place: start,
    keyPlace(path, key) {
      const parent = path.length === 0 ? document.contents : document.getIn(path, true)
      if (isNode(parent) && 'items' in parent)
        for (const item of parent.items)
          if (isPair(item) && isNode(item.key) && 'value' in item.key && item.key.value === key)
            return at(item.key.range?.[0] ?? 0)
      return start(path)
    },
  }
}
