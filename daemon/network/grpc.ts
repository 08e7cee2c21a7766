// pure
import { NetworkDenied } from './denial.ts'
import type { Headers } from './request-nature.ts'
import { header } from './request-nature.ts'

/** gRPC itself; `application/grpc-web` is plain HTTP and passes. */
export const isGrpc = (contentType: string | undefined): boolean =>
  /^application\/grpc(?:$|[+;\s])/i.test(contentType?.trim() ?? '')

/** Its answers end in trailers over HTTP/2, which is not spoken to the other end: said at once instead of a broken call. */
export function refuseGrpc(headers: Headers, host: string, port: number): void {
  if (!isGrpc(header(headers, 'content-type'))) return
  throw new NetworkDenied(
    501,
    'grpc',
    'gRPC needs HTTP/2 up to the other end, and the gate speaks HTTP/1.1 there',
    {
      help: `network.rules: {hosts: [${JSON.stringify(host)}], ports: [${port}], tls: tunnel, class: live}, which passes it unread`,
    },
  )
}

/** Codes of gRPC for what it would take for a failure of the transport, and try again. */
const CODES: Readonly<Record<number, number>> = { 403: 7, 421: 7, 429: 8, 501: 12 }
const UNAVAILABLE = 14

/** The form in which programs that speak gRPC show a refusal: an answer that is nothing but trailers. */
export function grpcRefusal(denied: NetworkDenied): Record<string, string> {
  const help = denied.help === undefined ? '' : ` (what would help: ${denied.help})`
  return {
    'content-type': 'application/grpc',
    'grpc-status': String(CODES[denied.status] ?? UNAVAILABLE),
    'grpc-message': percentEncoded(`${denied.message} [${denied.rule}]${help}`),
  }
}

const percentEncoded = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x25
        ? `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
        : String.fromCharCode(byte),
    )
    .join('')
