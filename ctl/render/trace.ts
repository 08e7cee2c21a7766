// pure
import { columnsText } from './columns.ts'
import type { Paint } from './paint.ts'
import { timesText } from './sizes.ts'
import { visibleLine } from './visible.ts'

/** What is shown of a record of the audit log. */
export interface TracedRecord {
  readonly seq: number
  readonly time: string
  readonly kind: string
  readonly facts: Readonly<Record<string, unknown>>
}

const HEADER = ['RECORD', 'TIME', 'WHAT', 'WHO', 'DETAILS']
/** Of a list, so that a commit of thousands of files stays a line. */
const SHOWN = 3
const HASH = /^[0-9a-f]{40,64}$/

/** What is on record about one branch, one line per record; `nameOf` knows the users of this machine. */
export function traceTable(
  records: readonly TracedRecord[],
  nameOf: (uid: number) => string | undefined,
  paint: Paint,
  width?: number,
): string {
  const rows = records.map((record) => [
    String(record.seq),
    secondsOf(record.time),
    visibleLine(record.kind),
    whoOf(record.facts, nameOf),
    visibleLine(detailsOf(record)),
  ])
  return columnsText(HEADER, rows, paint, width, 'fold')
}

const secondsOf = (time: string): string => visibleLine(time).replace(/\.\d+Z$/, 'Z')

function whoOf(facts: TracedRecord['facts'], nameOf: (uid: number) => string | undefined): string {
  const uid = [facts.by, facts.requester].find((one) => typeof one === 'number')
  return uid === undefined ? '-' : visibleLine(nameOf(uid) ?? `uid ${uid}`)
}

function detailsOf({ kind, facts }: TracedRecord): string {
  if (kind === 'exit') return exitText(facts)
  return Object.entries(facts)
    .filter(([key, value]) => !isSaid(key, value))
    .map(([key, value]) => (value === true ? key : `${key} ${valueText(value)}`))
    .join(', ')
}

/** In the column of its own, or nothing. */
const isSaid = (key: string, value: unknown): boolean =>
  ((key === 'by' || key === 'requester') && typeof value === 'number') ||
  value === null ||
  value === false ||
  value === '' ||
  (Array.isArray(value) && value.length === 0)

/** How it ended; what it used is in the record. */
function exitText({ code, signal, cause, own, restarts }: TracedRecord['facts']): string {
  const how = typeof signal === 'string' ? `signal ${signal}` : `status ${String(code)}`
  const why = cause === 'exited' || cause === 'signal' ? '' : `, ${String(cause)}`
  const times = typeof restarts === 'number' ? `, started again ${timesText(restarts)}` : ''
  return `${how}${why}${own === false ? ', a further command' : ''}${times}`
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return HASH.test(value) ? value.slice(0, 12) : value
  if (!Array.isArray(value)) return typeof value === 'object' ? objectText(value) : String(value)
  // Words of a command, and the like.
  if (value.every((one) => typeof one === 'string')) return value.join(' ')
  const more = value.length > SHOWN ? ` and ${value.length - SHOWN} more` : ''
  return `${value.slice(0, SHOWN).map(valueText).join(', ')}${more}`
}

/** A thing with a name is called by it, one with a path is told with what became of it. */
function objectText(value: object | null): string {
  const { name, path, kind } = (value ?? {}) as { name?: unknown; path?: unknown; kind?: unknown }
  if (typeof path === 'string') return typeof kind === 'string' ? `${path} (${kind})` : path
  return typeof name === 'string' ? name : JSON.stringify(value)
}
