// pure
import type { DenialRow } from '../../daemon/contract/denial.ts'
import type { Paint } from './paint.ts'
import { visibleLine } from './visible.ts'

/** As many kinds as a person reads; all of them are in the JSON. */
const MOST_SHOWN = 20

/** What was blocked and why, each kind once, with the number of times that it is on record. */
export function denialsText(rows: readonly DenialRow[], paint: Paint): string {
  if (rows.length === 0) return ''
  const kinds = new Map<string, { row: DenialRow; times: number }>()
  for (const row of rows) {
    const key = [row.layer, row.rule, row.subject].join(' ')
    const known = kinds.get(key)
    if (known === undefined) kinds.set(key, { row, times: 1 })
    else known.times++
  }
  const shown = [...kinds.values()].slice(0, MOST_SHOWN)
  const more = kinds.size - shown.length
  const lines = shown.map(({ row, times }) => kindText(row, times, paint))
  return `${lines.join('')}${more > 0 ? label('', `${more} more kinds: --json shows all`, paint) : ''}`
}

function kindText({ layer, subject, rule, message, help }: DenialRow, times: number, paint: Paint): string {
  const often = times > 1 ? ` (${times} times)` : ''
  const what = `${paint.yellow(layer)} ${visibleLine(rule)}: ${visibleLine(subject)}: ${visibleLine(message)}${often}`
  return `${label('blocked', what, paint)}${help === undefined ? '' : label('', paint.dim(visibleLine(help)), paint)}`
}

const label = (name: string, text: string, paint: Paint): string =>
  `${paint.dim(name.padStart(10))}  ${text}\n`
