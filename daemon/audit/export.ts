// pure
import { PuzzledError } from '../lib/errors.ts'
import { type AuditRecord, decodeRecord } from './record.ts'

export const EXPORT_FORMATS = ['jsonl', 'cef', 'ocsf'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** One exported line for one record, without its newline. */
export function exportLine(line: Buffer, format: ExportFormat, version: string): string {
  if (format === 'jsonl') return line.toString('utf8')
  const record = decodeRecord(line)
  if (record === null)
    throw new PuzzledError('audit-failed', 'A line of the audit log is not a record', {
      hint: 'Which one: puzzlectl audit verify.',
    })
  return format === 'cef' ? cefLine(record, version) : JSON.stringify(ocsfEvent(record, version))
}

/** How much a record matters, 0–10 as CEF counts. */
const SEVERITY: Readonly<Record<string, number>> = {
  approve: 5,
  commit: 4,
  committed: 3,
  deny: 7,
  denied: 7,
  reject: 5,
  revert: 5,
  stuck: 9,
}

/** ArcSight Common Event Format: `|` and `\` are escaped in the header, `=`, `\` and line ends in the extension. */
function cefLine(record: AuditRecord, version: string): string {
  const header = (text: string): string => text.replace(/[\\|]/g, '\\$&').replace(/[\r\n]+/g, ' ')
  const value = (text: string): string =>
    text.replace(/[\\=]/g, '\\$&').replaceAll('\r', '\\r').replaceAll('\n', '\\n')
  const parts = [
    ['rt', String(Date.parse(record.time))],
    ['externalId', String(record.seq)],
    ['cs1Label', 'branch'],
    ['cs1', record.branch],
    ['cs2Label', 'facts'],
    ['cs2', JSON.stringify(record.facts)],
  ]
  const extension = parts.map(([key, text]) => `${key}=${value(text ?? '')}`).join(' ')
  const kind = header(record.kind)
  return `CEF:0|puzzled|puzzled|${header(version)}|${kind}|${kind}|${SEVERITY[record.kind] ?? 2}|${extension}`
}

/** Open Cybersecurity Schema Framework: API activity (class 6003); what has no field of its own is in `unmapped`. */
function ocsfEvent(record: AuditRecord, version: string): Record<string, unknown> {
  const severity = SEVERITY[record.kind] ?? 2
  return {
    class_uid: 6003,
    class_name: 'API Activity',
    category_uid: 6,
    category_name: 'Application Activity',
    activity_id: 99,
    activity_name: record.kind,
    type_uid: 600_399,
    time: Date.parse(record.time),
    severity_id: severity >= 7 ? 4 : severity >= 4 ? 3 : 1,
    metadata: {
      version: '1.3.0',
      uid: String(record.seq),
      product: { name: 'puzzled', vendor_name: 'puzzled', version },
    },
    api: { operation: record.kind, service: { name: 'puzzled' } },
    resources: [{ uid: record.branch, type: 'branch' }],
    unmapped: { prev: record.prev, facts: record.facts },
  }
}
