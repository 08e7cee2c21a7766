import { isFunction } from './purity.ts'
import { lineAt, type Node, type Source, walk } from './source.ts'

export const LIMITS = { file: 400, mostFiles: 300, medianFile: 110, function: 60 } as const

export const linesOf = (text: string): number => text.replace(/\n$/, '').split('\n').length

/** `size` of the file at the given share of the sorted sizes: 0.5 is the median. */
export function quantile(sizes: readonly number[], share: number): number {
  const sorted = [...sizes].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

export const isTestFile = (path: string): boolean => path.startsWith('test/') || path.endsWith('.test.ts')

/**
 * Functions that are longer than allowed. In tests the lines of functions inside do not count: a `describe` is a
 * list of tests, and each of those is measured.
 */
export function longFunctions(source: Source): string[] {
  const found: string[] = []
  walk(source.program, (node) => {
    if (!isFunction(node)) return
    const lines = ownLines(source, node)
    if (lines > LIMITS.function)
      found.push(`${source.path}:${lineAt(source.text, node.start)} function of ${lines} lines`)
  })
  return found
}

function ownLines(source: Source, node: Node): number {
  const span = (part: Node): number => lineAt(source.text, part.end) - lineAt(source.text, part.start) + 1
  if (!isTestFile(source.path)) return span(node)
  let inner = 0
  walk(node, (child, parents) => {
    if (child !== node && isFunction(child) && parents.filter(isFunction).length === 1)
      inner += span(child) - 1
  })
  return span(node) - inner
}

/** The type `any`, in every form in which it can be written. */
export function anyTypes(source: Source): string[] {
  const found: string[] = []
  walk(source.program, (node) => {
    if (node.type === 'TSAnyKeyword') found.push(`${source.path}:${lineAt(source.text, node.start)} any`)
  })
  return found
}

/** Only main.ts decides when the process ends; elsewhere undo steps would be lost. */
export function processExits(source: Source): string[] {
  const shipped = /^(daemon|ctl)\//.test(source.path) && !isTestFile(source.path)
  if (!shipped || source.path === 'ctl/main.ts' || source.path === 'daemon/main.ts') return []
  const found: string[] = []
  walk(source.program, (node) => {
    if (node.type !== 'MemberExpression') return
    const name = `${(node.object as Node).name}.${(node.property as Node).name}`
    if (name === 'process.exit' || name === 'process.abort')
      found.push(`${source.path}:${lineAt(source.text, node.start)} ${name}`)
  })
  return found
}

/** koffi outside the kernel layer, imported or required; its types too: nobody else should need them. */
export function strayFfi(source: Source): string[] {
  if (source.path.startsWith('daemon/kernel/')) return []
  return source.imports
    .filter((entry) => entry.from === 'koffi' || entry.from.startsWith('koffi/'))
    .map((entry) => `${source.path}:${entry.line} imports koffi`)
}

/** Notes of unfinished work: an issue or a decision page is the place for them. */
export function leftovers(source: Source): string[] {
  return source.comments
    .filter((comment) => /\b(TODO|FIXME|XXX|HACK)\b/.test(comment.value))
    .map(
      (comment) => `${source.path}:${lineAt(source.text, comment.start)} unfinished: ${comment.value.trim()}`,
    )
}
