import type { Socket } from 'node:net'
import { NetworkDenied, problemBody, problemHeaders } from './denial.ts'
import type { Gate } from './gate.ts'
import { parseAuthority } from './hostname.ts'
import { type Parsers, takeIn } from './intake.ts'
import { connectionRule } from './request-rule.ts'

/** `CONNECT host:port`: agreed to if some rule could let a request through; what comes through it is judged then. */
export async function connectTunnel(
  gate: Gate,
  parsers: Parsers,
  line: string,
  socket: Socket,
  head: Buffer,
): Promise<void> {
  socket.on('error', () => socket.destroy())
  try {
    // Without a port the default 0 is refused by every rule.
    const authority = parseAuthority(line, 0)
    if (!authority.ok) throw new NetworkDenied(400, 'bad-host', `The host is refused: ${authority.reason}`)
    const { host, port } = authority
    const rule = connectionRule(gate.rules, host, port)
    if (!rule.allowed) {
      const { decision } = rule
      throw new NetworkDenied(403, decision.rule, decision.reason, { help: decision.help })
    }
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    if (head.length > 0) socket.unshift(head)
    await takeIn(gate, parsers, socket, { via: 'connect', host, port, tls: false, sni: undefined })
  } catch (error) {
    const denied =
      error instanceof NetworkDenied
        ? error
        : new NetworkDenied(502, 'internal', 'The gate failed', { cause: error })
    gate.denied(`CONNECT ${line.slice(0, 300)}`, denied)
    refuseRaw(socket, denied)
  }
}

/** An answer on a connection that no HTTP parser owns any more. */
export function refuseRaw(
  socket: { end(text: string): unknown; destroySoon?: () => void },
  denied: NetworkDenied,
): void {
  const text = problemBody(denied)
  const headers = { ...problemHeaders(denied, Buffer.byteLength(text)), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${denied.status} Denied\r\n${lines.join('')}\r\n${text}`)
  socket.destroySoon?.()
}
