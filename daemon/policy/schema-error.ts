// pure
import type { z } from 'zod'
import type { ErrorCode } from '../contract/errors.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type DocumentPath, type SourceDocument, showPlace } from './document.ts'

type Issue = z.core.$ZodIssue

const ALL = 'puzzlectl profile validate FILE shows all of them.'

/** Checks a document against its schema; every problem is reported with file, line, what was found and expected. */
export function checkDocument<Schema extends z.ZodType>(
  document: SourceDocument,
  schema: Schema,
  code: ErrorCode,
  subject: string,
): z.output<Schema> {
  const checked = schema.safeParse(document.value)
  if (checked.success) return checked.data
  const lines = checked.error.issues.flatMap((issue) => describe(document, flatten(issue), schema))
  const [first, ...more] = lines
  throw new PuzzledError(
    code,
    more.length === 0 ? `${subject}: ${first}` : `${subject}: ${first} (and ${more.length} more)`,
    { data: { problems: lines }, ...(more.length > 0 && code === 'profile-invalid' ? { hint: ALL } : {}) },
  )
}

/** Of a union that failed, the branch that came nearest says more than "Invalid input". */
function flatten(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const depth = (issues: readonly Issue[]): number => Math.max(0, ...issues.map(({ path }) => path.length))
  const branches = issue.errors.filter((errors) => errors.length > 0)
  const best = [...branches].sort((a, b) => depth(b) - depth(a) || a.length - b.length)[0]?.[0]
  if (best === undefined) return issue
  return flatten({ ...best, path: [...issue.path, ...best.path] } as Issue)
}

function describe(document: SourceDocument, issue: Issue, schema: z.ZodType): string[] {
  const path = issue.path.filter((part): part is string | number => typeof part !== 'symbol')
  const name = showPath(path)
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(schema, path)
    return issue.keys.map((key) => {
      const near = nearest(key, known)
      const advice = near === undefined ? expectedKeys(known) : `, did you mean "${near}"?`
      return `${showPlace(document.keyPlace(path, key))}: unknown key ${JSON.stringify(key)}${name === '' ? '' : ` in ${name}`}${advice}`
    })
  }
  const found = valueAt(document.value, path)
  const missing = found === undefined
  const what = missing ? 'is missing' : `found ${shorten(found)}`
  return [`${showPlace(document.place(path))}: ${name || 'document'}: ${what}, ${expectation(issue)}`]
}

const expectedKeys = (known: readonly string[]): string =>
  known.length === 0 ? '' : `, expected one of ${known.join(', ')}`

function expectation(issue: Issue): string {
  if (!issue.message.startsWith('Invalid ')) return `expected ${issue.message}`
  if (issue.code === 'invalid_type') return `expected ${issue.expected}`
  if (issue.code === 'invalid_value')
    return `expected ${issue.values.map((v) => JSON.stringify(v)).join(' or ')}`
  return `expected ${issue.message}`
}

export function showPath(path: DocumentPath): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  )
}

function valueAt(value: unknown, path: DocumentPath): unknown {
  let current = value
  for (const part of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined
    current = (current as Record<string | number, unknown>)[part]
  }
  return current
}

const shorten = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

interface Definition {
  type: string
  shape?: Record<string, z.ZodType>
  innerType?: z.ZodType
  element?: z.ZodType
  valueType?: z.ZodType
  in?: z.ZodType
  options?: readonly z.ZodType[]
}

/** The keys that the schema knows at this path, read from the schema itself. */
function knownKeys(schema: z.ZodType, path: DocumentPath): string[] {
  const { def } = (schema as unknown as { _zod: { def: Definition } })._zod
  const inner = def.innerType ?? def.in
  if (inner !== undefined) return knownKeys(inner, path)
  if (def.options !== undefined) return def.options.flatMap((option) => knownKeys(option, path))
  const [head, ...rest] = path
  if (head === undefined) return Object.keys(def.shape ?? {})
  const next = def.shape?.[head] ?? def.element ?? def.valueType
  return next === undefined ? [] : knownKeys(next, rest)
}

/** The known key with the fewest edits, when that is close enough to be what was meant. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const limit = Math.max(2, Math.floor(word.length / 3))
  const ranked = known
    .map((key) => ({ key, edits: editDistance(word.toLowerCase(), key.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
  return ranked[0] !== undefined && ranked[0].edits <= limit ? ranked[0].key : undefined
}

function editDistance(a: string, b: string): number {
  if (a.length > 64 || b.length > 64) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitute))
    }
    row = next
  }
  return row[b.length] ?? 0
}
