import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ROWS, type ThreatRow } from '../../test/threats/rows.ts'

const path = 'docs/threat-model.md'
const document = readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
const [begin, end] = ['<!-- rows: generated from test/threats/rows.ts -->\n', '<!-- end of rows -->']
const [before, rest] = document.split(begin)
const after = rest?.slice(rest.indexOf(end))
if (before === undefined || after === undefined) throw new Error(`${path} has no place for the rows`)

const cell = (text: string): string => text.replaceAll('|', '\\|')
const files = ({ shown }: ThreatRow): string =>
  [...new Set(shown.map((place) => `\`${place.split(' › ')[0]?.replace(/^test\//, '')}\``))].join(', ')
const lines = ROWS.map(
  (row) => `| ${row.id} | ${cell(row.threat)} | ${files(row)} | ${cell(row.control)} | ${cell(row.behind)} |`,
)
const table = [
  '| row | threat | attacked in | control | what stands in the way |',
  '|---|---|---|---|---|',
  ...lines,
]
console.log(JSON.stringify({ [path]: `${before}${begin}${table.join('\n')}\n${after}` }))
