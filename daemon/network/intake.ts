import type { Socket } from 'node:net'
import { readClientHello } from './client-hello.ts'
import { NetworkDenied } from './denial.ts'
import { type Arrival, type Gate, markArrival } from './gate.ts'
import { type Hostname, parseHostname } from './hostname.ts'
import { connectionRule } from './request-rule.ts'
import { splice } from './splice.ts'

/** The parsers that a connection is handed to once it is known what it speaks. */
export interface Parsers {
  http1(socket: Socket): void
  http2(socket: Socket): void
}

/**
 * A connection whose requests are in origin form: through CONNECT or transparent. Looks at its first bytes, ends TLS
 * with a certificate for the name it asks for, or passes a tunnel on if the rules say so.
 */
export async function takeIn(gate: Gate, parsers: Parsers, socket: Socket, arrival: Arrival): Promise<void> {
  const subject = `${arrival.via} ${arrival.host?.text ?? socket.localAddress ?? '?'}:${arrival.port}`
  try {
    const first = await firstBytes(socket, gate.limits.handshakeMs)
    // It said nothing and will say nothing any more.
    if (first.length === 0) return void socket.destroy()
    if (first[0] === 0x16) await takeTls(gate, parsers, socket, arrival, first)
    else if (arrival.port === 443) throw new NetworkDenied(400, 'not-tls', 'Port 443 is for TLS')
    else {
      markArrival(socket, arrival)
      parsers.http1(socket)
    }
  } catch (error) {
    const denied =
      error instanceof NetworkDenied ? error : new NetworkDenied(400, 'bad-connection', String(error))
    gate.denied(subject, denied)
    socket.destroy()
  }
}

async function takeTls(
  gate: Gate,
  parsers: Parsers,
  socket: Socket,
  arrival: Arrival,
  first: Buffer,
): Promise<void> {
  const hello = readClientHello(first)
  if (hello.kind !== 'hello') throw new NetworkDenied(400, 'not-tls', 'The TLS handshake is malformed')
  const sni = hello.serverName === undefined ? undefined : nameIn(hello.serverName)
  const host = sni ?? arrival.host
  if (host === undefined) throw new NetworkDenied(421, 'no-sni', 'The TLS handshake names no host')
  const port = arrival.port ?? 443
  const rule = connectionRule(gate.rules, host, port)
  if (rule.allowed && rule.tls === 'tunnel') {
    if (arrival.host !== undefined && arrival.host.text !== host.text)
      throw new NetworkDenied(
        421,
        'sni-mismatch',
        `The handshake names ${host.text}, the connection ${arrival.host.text}`,
      )
    if (hello.encrypted)
      throw new NetworkDenied(421, 'hidden-name', 'An encrypted ClientHello hides where a tunnel goes')
    const name = gate.checkName(host)
    if (!name.ok) throw new NetworkDenied(403, name.rule, name.reason, { help: name.help })
    gate.budget.startRequest(rule.matched, host.text)
    const allowed = rule.matched?.addresses ?? []
    const upstream = await gate.upstream.connect({ scheme: 'https', host, port, allowed })
    if (socket.destroyed) upstream.destroy()
    else splice(gate, socket, upstream, rule.matched, host.text)
    return
  }
  // A mismatch is answered with 421 per request, which says more than a broken handshake.
  await endTls(gate, parsers, socket, { ...arrival, tls: true, sni }, host)
}

function nameIn(bytes: Buffer): Hostname {
  const parsed = parseHostname(bytes)
  if (!parsed.ok)
    throw new NetworkDenied(421, 'bad-host', `The name in the handshake is refused: ${parsed.reason}`)
  return parsed.host
}

async function endTls(
  gate: Gate,
  parsers: Parsers,
  socket: Socket,
  arrival: Arrival,
  host: Hostname,
): Promise<void> {
  const { TLSSocket } = process.getBuiltinModule('node:tls')
  const secure = new TLSSocket(socket, {
    isServer: true,
    secureContext: gate.authority.contextFor(host),
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  await new Promise<void>((done, failed) => {
    const timer = setTimeout(
      () => failed(new NetworkDenied(408, 'slow-handshake', 'The TLS handshake took too long')),
      gate.limits.handshakeMs,
    )
    const end = (act: () => void) => () => {
      clearTimeout(timer)
      act()
    }
    secure.once('secure', end(done))
    secure.once('close', end(done))
    secure.once('error', (error) => {
      end(() =>
        failed(new NetworkDenied(400, 'tls-failed', `The agent refused the handshake: ${error.message}`)),
      )()
    })
  })
  if (secure.destroyed) return
  secure.on('error', () => secure.destroy())
  markArrival(secure, arrival)
  if (secure.alpnProtocol === 'h2') parsers.http2(secure)
  else parsers.http1(secure)
}

/** Enough bytes to know what is spoken: one, or the whole ClientHello. They stay in the socket. */
function firstBytes(socket: Socket, patienceMs: number): Promise<Buffer> {
  return new Promise((done, failed) => {
    let have = Buffer.alloc(0)
    const timer = setTimeout(
      () => finish(() => failed(new NetworkDenied(408, 'silent', 'The connection said nothing'))),
      patienceMs,
    )
    const finish = (act: () => void): void => {
      clearTimeout(timer)
      socket.removeListener('readable', read)
      socket.removeListener('end', ended)
      socket.removeListener('close', ended)
      act()
    }
    const ended = (): void => finish(() => done(Buffer.alloc(0)))
    const read = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null)
        have = Buffer.concat([have, chunk])
      if (have.length === 0 || (have[0] === 0x16 && readClientHello(have).kind === 'incomplete')) return
      finish(() => {
        socket.unshift(have)
        done(have)
      })
    }
    socket.on('readable', read)
    socket.once('end', ended)
    socket.once('close', ended)
    read()
  })
}
