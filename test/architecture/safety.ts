import { lineAt, type Node, type Source, walk } from './source.ts'

/** A call of C whose paragraph does not say why it is safe. The rule holds for daemon/kernel, where all of them are. */

/** The reason stands in the lines right above, so that it is about this call. */
const FARTHEST = 12

export function unexplainedCalls(source: Source): string[] {
  if (!source.path.startsWith('daemon/kernel/') || source.path.endsWith('.test.ts')) return []
  const foreign = foreignNames(source)
  const lines = source.text.split('\n')
  const found: string[] = []
  walk(source.program, (node) => {
    if (node.type !== 'CallExpression' || !reachesForeign(node.callee as Node, foreign)) return
    const line = lineAt(source.text, node.start)
    if (!isExplained(lines, line)) found.push(`${source.path}:${line} calls C without a SAFETY: line`)
  })
  return found
}

/** Upwards to the first empty line: a reason further away is about something else. */
function isExplained(lines: readonly string[], line: number): boolean {
  for (let at = line - 1; at >= Math.max(0, line - FARTHEST); at--) {
    const text = lines[at]?.trim() ?? ''
    if (/\/\/ SAFETY: \S/.test(text)) return true
    if (text === '') return false
  }
  return false
}

interface Foreign {
  /** Functions that are C: `syscall`, or what they were imported as. */
  callable: ReadonlySet<string>
  /** Functions that hand out C functions, singly or as members: `libbpf()`. */
  giving: ReadonlySet<string>
  /** Variables, parameters and fields that hold such an object: `library`, `#library`. */
  holding: ReadonlySet<string>
}

const RAW = new Set(['syscall', 'trySyscall'])

function foreignNames({ program, imports }: Source): Foreign {
  const callable = new Set<string>()
  const giving = new Set<string>()
  walk(program, (node, parents) => {
    if (node.type === 'ImportSpecifier') {
      const imported = String((node.imported as Node).name)
      const from = parents.at(-1)?.source as Node | undefined
      if (RAW.has(imported) && String(from?.value).endsWith('/ffi.ts'))
        callable.add(String((node.local as Node).name))
    }
    if (isBinding(node)) for (const name of namesAround(parents)) giving.add(name)
  })
  const holding = new Set<string>()
  if (imports.length > 0 || giving.size > 0)
    walk(program, (node) => {
      const name = heldName(node)
      const value = (node.init ?? node.value) as Node | null | undefined
      if (name !== undefined && value?.type === 'CallExpression' && givesForeign(value, giving))
        holding.add(name)
    })
  return { callable, giving, holding }
}

/** `library.func('int f(void)')`: from here on a name stands for C. */
const isBinding = (node: Node): boolean =>
  node.type === 'CallExpression' &&
  (node.callee as Node).type === 'MemberExpression' &&
  ((node.callee as Node).property as Node).name === 'func'

/** The functions in which a binding stands, and the variable that it initialises when it is not made inside one. */
function namesAround(parents: readonly Node[]): string[] {
  return parents.flatMap((parent) => {
    if (parent.type === 'FunctionDeclaration' || parent.type === 'VariableDeclarator')
      return [String((parent.id as Node).name)]
    return []
  })
}

function heldName(node: Node): string | undefined {
  if (node.type === 'VariableDeclarator') return (node.id as Node).name as string | undefined
  if (node.type === 'PropertyDefinition') return (node.key as Node).name as string | undefined
  return undefined
}

const givesForeign = (call: Node, giving: ReadonlySet<string>): boolean =>
  giving.has(String((call.callee as Node).name))

/** `syscall(…)`, `libbpf().open(…)`, `sendFunction()(…)`, `library.add(…)`, `this.#library.nft_ctx_new(…)`. */
function reachesForeign(callee: Node, foreign: Foreign): boolean {
  if (callee.type === 'Identifier') return foreign.callable.has(String(callee.name))
  if (callee.type === 'CallExpression') return givesForeign(callee, foreign.giving)
  if (callee.type !== 'MemberExpression' || (callee.property as Node).name === 'func') return false
  const object = callee.object as Node
  if (object.type === 'CallExpression') return givesForeign(object, foreign.giving)
  if (object.type === 'Identifier') return foreign.holding.has(String(object.name))
  if (object.type === 'MemberExpression') {
    const property = object.property as Node
    // `libbpf().load.async(…)` as well as `this.#library.call(…)`.
    return foreign.holding.has(String(property.name)) || reachesForeign(object, foreign)
  }
  return false
}
