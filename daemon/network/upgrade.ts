import type { Duplex } from 'node:stream'
import type { AskedHead } from './agent-request.ts'
import { judgeable } from './arriving.ts'
import { refuseRaw } from './connect.ts'
import { Redactor, redactText, type Secret } from './credentials.ts'
import { NetworkDenied } from './denial.ts'
import type { AnswerHandler, Exchange } from './exchange.ts'
import { type Outgoing, outgoing } from './forward.ts'
import type { Gate } from './gate.ts'
import { responseHeaders } from './headers.ts'
import type { Headers } from './request-nature.ts'
import { judge } from './serve.ts'
import { type Search, splice } from './splice.ts'
import { upstreamError } from './upstream-error.ts'

/** A WebSocket can carry anything, so only a live rule lets it through; what is in it is not looked at. */
export async function upgradeWebSocket(
  gate: Gate,
  request: AskedHead,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  let subject = `upgrade ${request.target.slice(0, 300)}`
  socket.on('error', () => socket.destroy())
  try {
    const judged = judgeable(request)
    subject = `WebSocket ${judged.scheme}://${judged.host.text}:${judged.port}${judged.target.raw.slice(0, 300)}`
    const decision = judge(gate, judged)
    if (decision.class !== 'live')
      throw new NetworkDenied(403, decision.rule, 'A WebSocket needs a rule of class "live"')
    const { host, scheme, port } = judged
    const { matched } = decision
    gate.budget.startRequest(matched, host.text)
    const out = outgoing(gate, judged, decision)
    const allowed = matched?.addresses ?? []
    const upstream = await new Promise<Duplex>((done, failed) => {
      const handler = new UpgradeRelay(socket, out.secrets, done, failed)
      gate.upstream
        .dispatch(
          {
            scheme,
            host,
            port,
            allowed,
            method: 'GET',
            target: out.target,
            headers: searchable(out),
            body: null,
            upgrade: 'websocket',
          },
          handler,
        )
        .catch(failed)
    })
    if (head.length > 0) upstream.write(head)
    const search = out.secrets.length === 0 ? undefined : searchFor(out.secrets, gate, subject)
    splice(gate, socket, upstream, matched, host.text, search)
    socket.resume()
    upstream.resume()
  } catch (error) {
    const denied = upstreamError(error)
    gate.denied(subject, denied)
    refuseRaw(socket, denied)
  }
}

/** Frames that are compressed could not be searched for a secret that went out. */
const searchable = ({ headers, secrets }: Outgoing): Headers =>
  secrets.length === 0 ? headers : headers.filter(([name]) => name !== 'sec-websocket-extensions')

/** A frame says how long it is, so a secret in it cannot be replaced by something else: it ends the connection. */
function searchFor(secrets: readonly Secret[], gate: Gate, subject: string): Search {
  const redactor = new Redactor(secrets)
  return {
    push: (chunk) => {
      const clean = redactor.push(chunk)
      if (redactor.found === 0) return clean
      const denied = new NetworkDenied(502, 'secret-echoed', 'The other end said a credential of this branch')
      gate.denied(subject, denied)
      throw denied
    },
    end: () => redactor.end(),
  }
}

class UpgradeRelay implements AnswerHandler {
  readonly #agent: Duplex
  readonly #secrets: readonly Secret[]
  readonly #done: (upstream: Duplex) => void
  readonly #failed: (error: unknown) => void
  #exchange: Exchange | undefined

  constructor(
    agent: Duplex,
    secrets: readonly Secret[],
    done: (upstream: Duplex) => void,
    failed: (error: unknown) => void,
  ) {
    this.#agent = agent
    this.#secrets = secrets
    this.#done = done
    this.#failed = failed
  }

  begun(exchange: Exchange): void {
    this.#exchange = exchange
    this.#agent.once('close', () => exchange.abort(new Error('The agent went away')))
  }

  upgraded(headers: Headers, upstream: Duplex): void {
    const lines = responseHeaders(headers).map(
      ([name, value]) => `${name}: ${redactText(value, this.#secrets)}\r\n`,
    )
    this.#agent.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n${lines.join('')}\r\n`,
    )
    this.#done(upstream)
  }

  /** An ordinary answer to an upgrade: the other end does not want it. */
  head(status: number): void {
    this.#exchange?.abort(
      new NetworkDenied(502, 'upgrade-refused', `The other end answered ${status} instead of upgrading`),
    )
  }

  data(): void {
    // Of an answer that was refused with its head.
  }

  end(): void {
    this.#failed(new NetworkDenied(502, 'upgrade-refused', 'The other end did not upgrade'))
  }

  failed(error: Error): void {
    this.#failed(error)
  }
}
