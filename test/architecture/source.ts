import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'rolldown/utils'

export const repository = fileURLToPath(new URL('../../', import.meta.url))

/** A syntax node as the parser gives it: ESTree with TypeScript's additions. */
export interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

/** One `import`, `export … from`, `import()` or `require()` with a literal source. */
export interface Import {
  from: string
  /** `import type`, `import { type A }` only, or `export type`: nothing of it is left at run time. */
  typeOnly: boolean
  dynamic: boolean
  /** Imported names; `*` for a namespace, empty for a bare import. */
  names: readonly string[]
  line: number
}

export interface Source {
  path: string
  text: string
  program: Node
  imports: readonly Import[]
  comments: readonly { value: string; start: number; end: number }[]
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** Calls `visit` for each node, parents first, with the chain of parents (nearest last). */
export function walk(node: Node, visit: (node: Node, parents: readonly Node[]) => void): void {
  const parents: Node[] = []
  const step = (current: Node): void => {
    visit(current, parents)
    parents.push(current)
    for (const value of Object.values(current))
      if (Array.isArray(value)) for (const item of value) isNode(item) && step(item)
      else if (isNode(value)) step(value)
    parents.pop()
  }
  step(node)
}

export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

/** Parses one file. A file that the parser does not accept is an error, never an empty result. */
export function parse(path: string, text: string): Source {
  const result = parseSync(path, text)
  if (result.errors.length > 0) throw new Error(`Cannot parse ${path}: ${result.errors[0]?.message}`)
  const program = result.program as unknown as Node
  return { path, text, program, imports: importsOf(program, text), comments: result.comments }
}

function importsOf(program: Node, text: string): Import[] {
  const found: Import[] = []
  walk(program, (node) => {
    const entry = importAt(node)
    if (entry !== undefined) found.push({ ...entry, line: lineAt(text, node.start) })
  })
  return found
}

function importAt(node: Node): Omit<Import, 'line'> | undefined {
  const source = literal(node.source)
  if (node.type === 'ImportDeclaration' && source !== undefined) {
    const parts = node.specifiers as Node[]
    const typeOnly =
      node.importKind === 'type' || (parts.length > 0 && parts.every((part) => part.importKind === 'type'))
    return { from: source, typeOnly, dynamic: false, names: parts.map(importedName) }
  }
  if (
    (node.type === 'ExportNamedDeclaration' || node.type === 'ExportAllDeclaration') &&
    source !== undefined
  )
    return { from: source, typeOnly: node.exportKind === 'type', dynamic: false, names: ['*'] }
  if (node.type === 'ImportExpression')
    return { from: source ?? '(computed)', typeOnly: false, dynamic: true, names: ['*'] }
  if (node.type === 'CallExpression') {
    const required = literal((node.arguments as Node[])[0])
    if (required !== undefined && looksLikeRequire(node.callee as Node))
      return { from: required, typeOnly: false, dynamic: true, names: ['*'] }
  }
  return undefined
}

/** `require('x')` and `createRequire(import.meta.url)('x')`. */
const looksLikeRequire = (callee: Node): boolean =>
  (callee.type === 'Identifier' && /^require/.test(String(callee.name))) ||
  (callee.type === 'CallExpression' && (callee.callee as Node).name === 'createRequire')

const literal = (node: unknown): string | undefined =>
  isNode(node) && node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined

function importedName(part: Node): string {
  if (part.type === 'ImportSpecifier') return String((part.imported as Node).name)
  return part.type === 'ImportDefaultSpecifier' ? 'default' : '*'
}

/** All files that git knows of or would add: what a commit of this tree holds. */
export function committedFiles(): string[] {
  // Whoever owns the checkout: git is only asked for names.
  const list = (...which: string[]): string[] =>
    execFileSync('git', ['-c', 'safe.directory=*', 'ls-files', '-z', ...which], {
      cwd: repository,
      encoding: 'utf8',
      maxBuffer: 64 << 20,
    }).split('\0')
  const gone = new Set(list('--deleted'))
  return [...new Set(list('--cached', '--others', '--exclude-standard'))]
    .filter((path) => path !== '' && !gone.has(path))
    .sort()
}

export const readCommitted = (path: string): string => readFileSync(repository + path, 'utf8')
