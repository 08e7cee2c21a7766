import { type Node, parse, readCommitted, walk } from '../architecture/source.ts'

/** Titles of the suites and tests of a file: what is called with a text first and a function last. */
export function titlesIn(path: string): string[] {
  const text = readCommitted(path)
  const titles: string[] = []
  walk(parse(path, text).program, (node) => {
    if (node.type !== 'CallExpression') return
    const given = node.arguments as Node[]
    const [first, last] = [given[0], given.at(-1)]
    if (first === undefined || last === undefined || !/Function/.test(last.type)) return
    if (first.type === 'Literal' || first.type === 'TemplateLiteral')
      titles.push(text.slice(first.start + 1, first.end - 1))
  })
  return titles
}
