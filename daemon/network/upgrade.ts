import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { judgeable } from './arriving.ts'
import { refuseRaw } from './connect.ts'
import { NetworkDenied } from './denial.ts'
import { outgoing } from './forward.ts'
import type { Gate } from './gate.ts'
import { responseHeaders } from './headers.ts'
import { judge } from './serve.ts'
import { splice } from './splice.ts'
import { upstreamError } from './upstream-error.ts'

export const isWebSocket = (request: IncomingMessage): boolean =>
  request.headers.upgrade?.trim().toLowerCase() === 'websocket'

/** A WebSocket can carry anything, so only a live rule lets it through; what is in it is not looked at. */
export async function upgradeWebSocket(
  gate: Gate,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  let subject = `upgrade ${(request.url ?? '').slice(0, 300)}`
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
      const handler = new UpgradeRelay(socket, done, failed)
      gate.upstream
        .dispatch(
          {
            scheme,
            host,
            port,
            allowed,
            method: 'GET',
            target: out.target,
            headers: out.headers,
            body: null,
            upgrade: 'websocket',
          },
          handler,
        )
        .catch(failed)
    })
    if (head.length > 0) upstream.write(head)
    splice(gate, socket, upstream, matched, host.text)
  } catch (error) {
    const denied = upstreamError(error)
    gate.denied(subject, denied)
    refuseRaw(socket, denied)
  }
}

class UpgradeRelay implements Dispatcher.DispatchHandler {
  readonly #agent: Duplex
  readonly #done: (upstream: Duplex) => void
  readonly #failed: (error: unknown) => void

  constructor(agent: Duplex, done: (upstream: Duplex) => void, failed: (error: unknown) => void) {
    this.#agent = agent
    this.#done = done
    this.#failed = failed
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#agent.once('close', () => controller.abort(new Error('The agent went away')))
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    headers: Record<string, string | string[] | undefined>,
    upstream: Duplex,
  ): void {
    const list = Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => [name, one] as const),
    )
    const lines = responseHeaders(list).map(([name, value]) => `${name}: ${value}\r\n`)
    this.#agent.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n${lines.join('')}\r\n`,
    )
    this.#done(upstream)
  }

  /** An ordinary answer to an upgrade: the other end does not want it. */
  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status >= 200)
      controller.abort(
        new NetworkDenied(502, 'upgrade-refused', `The other end answered ${status} instead of upgrading`),
      )
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#failed(error)
  }
}
