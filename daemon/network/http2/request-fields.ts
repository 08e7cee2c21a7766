// pure
import { isHeader } from '../answer-parser.ts'
import type { Field } from './header-table.ts'

export interface RequestFields {
  readonly method: string
  readonly path: string
  readonly length: number | undefined
  readonly expectsContinue: boolean
}

const PSEUDO: ReadonlySet<string> = new Set([':method', ':scheme', ':path', ':authority'])
/** Speak about a connection, which HTTP/2 does in frames. */
const OF_CONNECTIONS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])
const UPPER = /[A-Z]/
const BLANK_AROUND = /^[ \t]|[ \t]$/

/** The request that these fields are; a text says why they are none. `bodyless`: nothing follows them. */
export function requestOf(fields: readonly Field[], bodyless: boolean): RequestFields | string {
  const pseudo = new Map<string, string>()
  let [plain, length, expects] = [false, undefined as number | undefined, false]
  for (const [name, value] of fields) {
    if (name.startsWith(':')) {
      if (plain || !PSEUDO.has(name) || pseudo.has(name)) return `the pseudo header ${JSON.stringify(name)}`
      if (!isHeader(name.slice(1), value)) return `the value of ${name}`
      pseudo.set(name, value)
      continue
    }
    plain = true
    const wrong = wrongIn(name, value)
    if (wrong !== undefined) return wrong
    if (name === 'content-length') {
      if (!/^\d{1,15}$/.test(value) || (length !== undefined && length !== Number(value))) return 'the length'
      length = Number(value)
    } else if (name === 'expect') expects = value.toLowerCase() === '100-continue'
  }
  if (bodyless && (length ?? 0) > 0) return 'the length of a body that does not follow'
  const [method, path] = [pseudo.get(':method'), pseudo.get(':path')]
  if (method === 'CONNECT') return { method, path: path ?? '', length, expectsContinue: expects }
  if (method === undefined || path === undefined || path === '' || !pseudo.has(':scheme'))
    return 'a pseudo header that is missing'
  return { method, path, length, expectsContinue: expects }
}

/** What comes behind a body: nothing that could change what was judged. */
export const areTrailers = (fields: readonly Field[]): boolean =>
  fields.every(([name, value]) => !name.startsWith(':') && wrongIn(name, value) === undefined)

function wrongIn(name: string, value: string): string | undefined {
  if (UPPER.test(name) || !isHeader(name, value) || BLANK_AROUND.test(value))
    return `the header ${JSON.stringify(name.slice(0, 40))}`
  if (OF_CONNECTIONS.has(name)) return `the header ${name}, which is of HTTP/1.1`
  return name === 'te' && value.toLowerCase() !== 'trailers' ? 'the header te' : undefined
}
