import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COUNTS } from '../../test/threats/counts.ts'
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
const number = (count: number): string => count.toLocaleString('en')
const counts = [
  '| row | rounds | asked | in `npm test` | variable | all of them |',
  '|---|---|---|---|---|---|',
  ...COUNTS.map(
    ({ row, what, asked, usual, variable, full }) =>
      `| ${row} | ${what} | ${number(asked)} | ${number(usual)} | \`${variable}\` | ${full} |`,
  ),
]
const [COUNTS_BEGIN, COUNTS_END] = ['<!-- counts -->\n', '<!-- end of counts -->']
const [head, countsRest] = after.split(COUNTS_BEGIN)
const tail = countsRest?.slice(countsRest.indexOf(COUNTS_END))
if (head === undefined || tail === undefined) throw new Error(`${path} has no place for the counts`)
const written = `${head}${COUNTS_BEGIN}${counts.join('\n')}\n${tail}`
console.log(JSON.stringify({ [path]: `${before}${begin}${table.join('\n')}\n${written}` }))
