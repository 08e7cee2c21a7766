import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AskedHead } from './agent-request.ts'
import { judgeable } from './arriving.ts'
import { refuseRaw } from './connect.ts'
import { Redactor, redactText, type Secret } from './credentials.ts'
import { NetworkDenied } from './denial.ts'
import type { AnswerHandler, Exchange } from './exchange.ts'
import { AnswerRelay, type Asked, type Outgoing, outgoing } from './forward.ts'
import type { Gate } from './gate.ts'
import { responseHeaders } from './headers.ts'
import { Http1Answer } from './http1-answer.ts'
import type { Headers } from './request-nature.ts'
import { judge } from './serve.ts'
import { type Search, splice } from './splice.ts'
import { upstreamError } from './upstream-error.ts'

/** A WebSocket can carry anything, so only a live rule lets it through; what is in it is not looked at. */
export async function upgradeWebSocket(
  gate: Gate,
  request: AskedHead,
  socket: Socket,
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
    const asked = { head: false, decision, host: host.text, secrets: out.secrets }
    const upstream = await new Promise<Duplex | undefined>((done, failed) => {
      const handler = new UpgradeRelay(gate, socket, asked, done, failed)
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
    if (upstream === undefined) return
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
  readonly #gate: Gate
  readonly #agent: Socket
  readonly #asked: Asked
  /** Without a connection where the other end answered instead. */
  readonly #done: (upstream: Duplex | undefined) => void
  readonly #failed: (error: unknown) => void
  #exchange: Exchange | undefined
  #answer: AnswerRelay | undefined

  constructor(
    gate: Gate,
    agent: Socket,
    asked: Asked,
    done: (upstream: Duplex | undefined) => void,
    failed: (error: unknown) => void,
  ) {
    this.#gate = gate
    this.#agent = agent
    this.#asked = asked
    this.#done = done
    this.#failed = failed
  }

  begun(exchange: Exchange): void {
    this.#exchange = exchange
    this.#agent.once('close', () => exchange.abort(new Error('The agent went away')))
  }

  upgraded(headers: Headers, upstream: Duplex): void {
    const lines = responseHeaders(headers).map(
      ([name, value]) => `${name}: ${redactText(value, this.#asked.secrets)}\r\n`,
    )
    this.#agent.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n${lines.join('')}\r\n`,
    )
    this.#done(upstream)
  }

  /** An ordinary answer to an upgrade: the other end does not want it, and says why. It is the last on its connection. */
  head(status: number, headers: Headers): void {
    const exchange = this.#exchange
    if (exchange === undefined) return
    const agent = this.#agent
    const to = new Http1Answer(
      agent,
      { method: 'GET', isNew: true, keepAlive: false, expect: undefined },
      { answered: () => agent.destroySoon() },
    )
    agent.once('close', () => to.leave())
    this.#answer = new AnswerRelay(this.#gate, this.#asked, to, () => this.#done(undefined), this.#failed)
    this.#answer.begun(exchange)
    this.#answer.head(status, headers)
  }

  data(bytes: Buffer): void {
    this.#answer?.data(bytes)
  }

  arrived(): void {
    this.#answer?.arrived()
  }

  end(trailers: Headers): void {
    this.#answer?.end(trailers)
  }

  failed(error: Error): void {
    if (this.#answer === undefined) this.#failed(error)
    else this.#answer.failed(error)
  }
}
