// pure
import { matchesGlob } from './request-target.ts'

/**
 * Is this body of a POST a read? `graphql`: every operation in the document is a query. `json-rpc`: every method is
 * one that the rule lists. Whatever could be read in two ways is a write.
 */
export function isReadBody(
  kind: 'graphql' | 'json-rpc',
  body: Uint8Array,
  readMethods: readonly string[],
): boolean {
  const text = Buffer.from(body).toString('utf8')
  // Invalid UTF-8 and repeated keys: the server's parser might see another document.
  if (!Buffer.from(text, 'utf8').equals(body) || text.startsWith('\ufeff') || hasRepeatedKey(text))
    return false
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return false
  }
  const calls = Array.isArray(parsed) ? parsed : [parsed]
  if (calls.length === 0 || calls.length > 100) return false
  return calls.every((call: unknown) => (kind === 'graphql' ? isQuery(call) : isReadCall(call, readMethods)))
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isReadCall(call: unknown, readMethods: readonly string[]): boolean {
  if (!isRecord(call) || typeof call.method !== 'string') return false
  const method = call.method
  return readMethods.some((glob) => matchesGlob(glob, method))
}

const GRAPHQL_KEYS: ReadonlySet<string> = new Set(['query', 'operationName', 'variables'])

/** Unknown keys (persisted queries, `mutation`, `id`) name an operation that we do not see. */
function isQuery(call: unknown): boolean {
  if (!isRecord(call) || typeof call.query !== 'string') return false
  if (!Object.keys(call).every((key) => GRAPHQL_KEYS.has(key))) return false
  return (
    definitionsOf(call.query)?.every((word) => word === 'query' || word === '{' || word === 'fragment') ??
    false
  )
}

const TOKEN =
  /"""(?:\\"""|[\s\S])*?"""|"(?:\\.|[^"\\\n\r])*"|#[^\n\r]*|[{}()[\]]|[_A-Za-z][_0-9A-Za-z]*|[\s,\ufeff]+|[-!$&:=@|.0-9+]/y

/** The first word of every top-level definition; undefined when the document does not tokenise or does not close. */
function definitionsOf(document: string): readonly string[] | undefined {
  const found: string[] = []
  const open: string[] = []
  let inside = false
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < document.length) {
    const token = TOKEN.exec(document)?.[0]
    if (token === undefined) return undefined
    if (/^[\s,\ufeff#]/.test(token)) continue
    if (open.length === 0 && !inside) {
      found.push(token)
      inside = true
    }
    if ('{(['.includes(token)) open.push(token)
    else if ('})]'.includes(token)) {
      if (`${open.pop() ?? ''}${token}`.search(/^(\{\}|\(\)|\[\])$/) < 0) return undefined
      if (open.length === 0 && token === '}') inside = false
    }
  }
  return open.length === 0 && !inside && found.length > 0 ? found : undefined
}

/** Looks for a key that occurs twice in one object: parsers differ in which one they take. */
export function hasRepeatedKey(json: string): boolean {
  const tokens = json.match(/"(?:\\[\s\S]|[^"\\])*"|[{}[\]:,]|[^\s"{}[\]:,]+/g) ?? []
  const objects: (Set<string> | null)[] = []
  for (const [index, token] of tokens.entries()) {
    if (token === '{') objects.push(new Set())
    else if (token === '[') objects.push(null)
    else if (token === '}' || token === ']') objects.pop()
    else if (tokens[index + 1] === ':' && token.startsWith('"')) {
      const keys = objects.at(-1)
      const key = keyText(token)
      if (keys === undefined || keys === null || key === undefined) continue
      if (keys.has(key)) return true
      keys.add(key)
    }
  }
  return false
}

function keyText(token: string): string | undefined {
  try {
    // Case-insensitive decoders exist (Go's): two spellings of a key count as one.
    return String(JSON.parse(token)).toLowerCase()
  } catch {
    return undefined
  }
}
