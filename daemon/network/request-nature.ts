// pure
import { queryParameters, type Target } from './request-target.ts'

export type Headers = readonly (readonly [name: string, value: string])[]

export interface RequestShape {
  readonly method: string
  readonly target: Target
  readonly headers: Headers
}

/** Whether a request can change something at the other end, and what makes us think so. */
export interface Nature {
  readonly kind: 'read' | 'write'
  readonly because: string
  /** Methods that some server could act on: the method itself and every override of it. */
  readonly methods: readonly string[]
  /** Only forwarding can answer it, so it cannot be queued: upgrades and git's push. */
  readonly interactive: boolean
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const OVERRIDES: ReadonlySet<string> = new Set([
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-method',
])
/** Headers that make a server judge another path than the one in the request line. */
const REROUTES: ReadonlySet<string> = new Set(['x-original-url', 'x-rewrite-url', 'x-original-uri'])

/** The first value of a header; `name` in lower case. */
export function header(headers: Headers, name: string): string | undefined {
  for (const one of headers) if (one[0].length === name.length && one[0].toLowerCase() === name) return one[1]
  return undefined
}

/** The method alone proves nothing (S38): everything that turns a read into a write counts. */
export function natureOf(request: RequestShape): Nature {
  const override = overrideOf(request)
  const methods = override === undefined ? [request.method] : [request.method, override]
  const write = (because: string, interactive = false): Nature => ({
    kind: 'write',
    because,
    methods,
    interactive,
  })
  if (header(request.headers, 'upgrade') !== undefined)
    return write('it asks for an upgrade of the protocol', true)
  if (isGitPush(request)) return write('it is a git push', true)
  if (override !== undefined) return write(`it overrides its method with ${override}`)
  if (isGitFetch(request)) return { kind: 'read', because: 'it is a git fetch', methods, interactive: false }
  if (!SAFE.has(request.method)) return write(`its method is ${request.method}`)
  if (hasBody(request.headers)) return write(`it is a ${request.method} with a body`)
  if (request.headers.some(([name]) => REROUTES.has(name.toLowerCase())))
    return write('a header names another path')
  if (isGraphqlChange(request.target)) return write('its query is a GraphQL mutation')
  return { kind: 'read', because: `its method is ${request.method}`, methods, interactive: false }
}

function overrideOf(request: RequestShape): string | undefined {
  for (const [name, value] of request.headers)
    if (OVERRIDES.has(name.toLowerCase()) && methodIn(value) !== request.method) return methodIn(value)
  if (request.target.query === '') return undefined
  for (const [name, value] of queryParameters(request.target.query))
    if (/^(_method|x-http-method-override)$/i.test(name) && methodIn(value) !== request.method)
      return methodIn(value)
  return undefined
}

const methodIn = (value: string): string => value.trim().toUpperCase()

const hasBody = (headers: Headers): boolean =>
  header(headers, 'transfer-encoding') !== undefined ||
  !['0', undefined].includes(header(headers, 'content-length')?.trim())

const anyReading = (target: Target, pattern: RegExp): boolean =>
  target.readings.some((reading) => pattern.test(reading))

function isGitPush(request: RequestShape): boolean {
  if (anyReading(request.target, /\/git-receive-pack$/)) return true
  return (
    anyReading(request.target, /\/info\/refs$/) &&
    queryParameters(request.target.query).some(
      ([name, value]) => name === 'service' && value !== 'git-upload-pack',
    )
  )
}

/** git fetches by POST. Only this exact exchange is a read; the path alone is not enough. */
const isGitFetch = (request: RequestShape): boolean =>
  request.method === 'POST' &&
  request.target.query === '' &&
  request.target.readings.every((reading) => reading.endsWith('/git-upload-pack')) &&
  header(request.headers, 'content-type') === 'application/x-git-upload-pack-request'

/** Some servers run mutations that come by GET. */
const isGraphqlChange = (target: Target): boolean =>
  target.query !== '' &&
  queryParameters(target.query).some(
    ([name, value]) => name === 'query' && /\b(mutation|subscription)\b/.test(value),
  )
