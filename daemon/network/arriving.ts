import type { AskedHead } from './agent-request.ts'
import { NetworkDenied } from './denial.ts'
import type { Arrival } from './gate.ts'
import { badFraming } from './headers.ts'
import { type Authority, parseAuthority } from './hostname.ts'
import type { Headers } from './request-nature.ts'
import { header } from './request-nature.ts'
import type { JudgedRequest } from './request-rule.ts'
import { parseAbsolute, parseTarget } from './request-target.ts'

/** Turns what the agent sent into the one value that is judged and sent on; everything ambiguous is refused here. */
export function judgeable(request: AskedHead): JudgedRequest {
  const { method, arrival, target: line } = request
  const headers = request.http2 ? fromHttp2(request.headers) : request.headers
  const framing = badFraming(headers)
  if (framing !== undefined)
    throw new NetworkDenied(400, 'bad-framing', `The request is ambiguous: ${framing}`)
  if (!/^[A-Z][A-Z-]{0,31}$/.test(method))
    throw new NetworkDenied(400, 'bad-method', 'The method is malformed')
  const place = arrival.via === 'explicit' ? fromAbsolute(line, headers) : fromOrigin(line, headers, arrival)
  const target = parseTarget(place.raw)
  if (!target.ok) {
    const status = target.reason === 'too-long' ? 414 : 400
    throw new NetworkDenied(status, 'bad-target', `The path is refused: ${target.reason}`)
  }
  return { method, scheme: place.scheme, host: place.host, port: place.port, target: target.target, headers }
}

interface Place extends Authority {
  readonly scheme: 'http' | 'https'
  readonly raw: string
}

function fromAbsolute(line: string, headers: Headers): Place {
  const absolute = parseAbsolute(line)
  if (!absolute.ok)
    throw new NetworkDenied(
      400,
      'bad-target',
      'A request to the proxy needs an absolute URL with a plain host',
    )
  const named = hostHeader(headers, absolute.scheme)
  if (named.host.text !== absolute.host.text || named.port !== absolute.port)
    throw new NetworkDenied(400, 'host-mismatch', 'The Host header and the URL name different places')
  return absolute
}

function fromOrigin(line: string, headers: Headers, arrival: Arrival): Place {
  const scheme = arrival.tls ? 'https' : 'http'
  const named = hostHeader(headers, scheme)
  const expected = [arrival.host, arrival.sni].filter((host) => host !== undefined)
  if (expected.some((host) => host.text !== named.host.text) || named.port !== arrival.port) {
    const meant = expected.map((host) => host.text).join(' and ')
    throw new NetworkDenied(
      421,
      'host-mismatch',
      `The request names ${named.host.text}:${named.port}, its connection ${meant}:${arrival.port}`,
    )
  }
  return { scheme, raw: line, host: named.host, port: named.port }
}

function hostHeader(headers: Headers, scheme: 'http' | 'https'): Authority {
  const authority = parseAuthority(header(headers, 'host') ?? '', scheme === 'https' ? 443 : 80)
  if (!authority.ok)
    throw new NetworkDenied(400, 'bad-host', `The Host header is refused: ${authority.reason}`)
  return authority
}

/** Pseudo headers become what HTTP/1.1 has for them; several cookie fields are one. */
function fromHttp2(all: Headers): Headers {
  const plain = all.filter(([name]) => !name.startsWith(':') && name !== 'cookie' && name !== 'host')
  const authority = all.filter(([name]) => name === ':authority' || name === 'host').map(([, value]) => value)
  if (new Set(authority).size > 1)
    throw new NetworkDenied(400, 'host-mismatch', ':authority and Host name different places')
  const cookies = all.filter(([name]) => name === 'cookie').map(([, value]) => value)
  const cookie = cookies.length === 0 ? [] : [['cookie', cookies.join('; ')] as const]
  return [...authority.slice(0, 1).map((value) => ['host', value] as const), ...plain, ...cookie]
}
