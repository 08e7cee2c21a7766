import { posix } from 'node:path'
import { lineAt, type Node, type Source, walk } from './source.ts'

export const isMarkedPure = (text: string): boolean => text.startsWith('// pure\n')

/**
 * Modules that a pure file may use at run time, with the names that compute and nothing else. Hashing is allowed: the
 * same bytes give the same digest. Random bytes, keys, files, sockets and clocks are not.
 */
const PURE_MODULES: Readonly<Record<string, readonly string[] | 'all'>> = {
  'node:buffer': ['Buffer', 'isUtf8', 'isAscii'],
  'node:crypto': ['createHash', 'hash', 'timingSafeEqual', 'verify', 'createPublicKey'],
  'node:net': ['isIP', 'isIPv4', 'isIPv6', 'BlockList'],
  'node:os': ['constants'],
  'node:path': ['posix'],
  'node:path/posix': 'all',
  'node:url': ['domainToASCII', 'domainToUnicode'],
  'node:util': ['isDeepStrictEqual', 'stripVTControlCharacters', 'types'],
  diff: 'all',
  yaml: 'all',
  zod: 'all',
}

/** Globals through which a file would see the machine, the time or chance. */
const IMPURE_GLOBALS = new Set(
  `process console performance crypto fetch navigator globalThis setTimeout setInterval setImmediate
   queueMicrotask WebSocket EventSource require WebAssembly SharedArrayBuffer Atomics Worker`.split(/\s+/),
)

const IMPURE_CALLS = new Set(['Date.now', 'Math.random'])

/** Every reason why a file marked `// pure` is not. */
export function impurities(source: Source, isPure: (path: string) => boolean): string[] {
  if (!isMarkedPure(source.text)) return []
  const found = source.imports.flatMap((entry) => {
    const reason = entry.typeOnly
      ? undefined
      : impureImport(source.path, entry.from, entry.names, entry.dynamic, isPure)
    return reason === undefined ? [] : [`${source.path}:${entry.line} ${reason}`]
  })
  walk(source.program, (node, parents) => {
    const name = impureName(node, parents)
    if (name !== undefined) found.push(`${source.path}:${lineAt(source.text, node.start)} uses ${name}`)
  })
  return found
}

function impureImport(
  path: string,
  from: string,
  names: readonly string[],
  dynamic: boolean,
  isPure: (path: string) => boolean,
): string | undefined {
  if (dynamic) return `loads ${from} at run time`
  if (from.startsWith('.')) {
    const target = posix.join(posix.dirname(path), from)
    return isPure(target) ? undefined : `imports ${target}, which is not marked // pure`
  }
  const allowed = PURE_MODULES[from]
  if (allowed === undefined) return `imports ${from}`
  const bad = allowed === 'all' ? [] : names.filter((name) => !allowed.includes(name))
  return bad.length === 0 ? undefined : `imports ${bad.join(', ')} of ${from}`
}

function impureName(node: Node, parents: readonly Node[]): string | undefined {
  if (node.type === 'MetaProperty') return 'import.meta'
  if (node.type === 'AwaitExpression' && !parents.some(isFunction)) return 'a top-level await'
  if (isBareDate(node)) return 'the clock (Date without an argument)'
  if (node.type === 'MemberExpression') {
    const called = `${(node.object as Node).name}.${(node.property as Node).name}`
    return IMPURE_CALLS.has(called) ? called : undefined
  }
  if (node.type !== 'Identifier' || !IMPURE_GLOBALS.has(String(node.name))) return undefined
  return isReference(node, parents.at(-1)) ? String(node.name) : undefined
}

const isBareDate = (node: Node): boolean =>
  (node.type === 'NewExpression' && (node.callee as Node).name === 'Date' && isEmpty(node.arguments)) ||
  (node.type === 'CallExpression' && (node.callee as Node).name === 'Date')

const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0

export const isFunction = (node: Node): boolean =>
  node.type === 'FunctionDeclaration' ||
  node.type === 'FunctionExpression' ||
  node.type === 'ArrowFunctionExpression'

/** A property key, a member name or a type's name is not a use of the global. */
function isReference(node: Node, parent: Node | undefined): boolean {
  if (parent === undefined) return true
  if (parent.type === 'MemberExpression') return parent.object === node || parent.computed === true
  if (parent.type === 'Property') return parent.value === node || parent.computed === true
  if (/^TS(As|Satisfies|NonNull)/.test(parent.type)) return true
  return !/^(TS|MethodDefinition|PropertyDefinition|ImportSpecifier|ExportSpecifier|Label)/.test(parent.type)
}
