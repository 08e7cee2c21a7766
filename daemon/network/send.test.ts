import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { network, rule } from '../../test/fixtures/network-rules.ts'
import { LIMITS, type NetworkLimits } from './limits.ts'
import { RequestQueue } from './queue.ts'
import type { SendOutcome } from './replay.ts'
import { compileRules } from './request-rule.ts'
import { PinnedResolver } from './resolver.ts'
import { Sender } from './send.ts'

let directory: string
let server: Server
let answer: (response: ServerResponse) => void
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'puzzled-send-'))
  server = createServer((request, response) => {
    request.resume().on('end', () => answer(response))
    response.on('error', () => undefined)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  rmSync(directory, { recursive: true })
})

async function send(limits: Partial<NetworkLimits> = {}): Promise<SendOutcome> {
  const { port } = server.address() as { port: number }
  const queue = await RequestQueue.open(join(directory, 'queue'))
  const rules = compileRules(
    network([rule('w', { hosts: ['127.0.0.1'], ports: [port], class: 'queue', addresses: ['127.0.0.1'] })]),
  )
  const merged = { ...LIMITS, ...limits }
  const resolver = new PinnedResolver()
  const sender = new Sender({ queue, rules, resolver, credentials: [], limits: merged, ca: [] })
  const head = { method: 'POST', scheme: 'http', host: '127.0.0.1', port, target: '/', headers: [] } as const
  const queued = await queue.add({ ...head, rule: 'w' }, await queue.spool(Readable.from([Buffer.from('x')])))
  try {
    return await sender.send(queued)
  } finally {
    await queue.close()
  }
}

it('keeps the beginning of an answer', async () => {
  answer = (response) => response.writeHead(201, { 'x-id': '7' }).end('made')
  const outcome = await send()
  expect(outcome).toMatchObject({ kind: 'answered', response: { status: 201, truncated: false } })
  answer = (response) => response.end('x'.repeat(5_000))
  expect(await send({ keptResponseBytes: 1_000 })).toMatchObject({ response: { truncated: true } })
})

it('an answer without end is what its status says, and the replay goes on', async () => {
  answer = (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      response.once('drain', more)
    }
    more()
  }
  expect(await send({ drainedResponseBytes: 300_000, keptResponseBytes: 100 })).toMatchObject({
    kind: 'answered',
    response: { status: 200, truncated: true },
  })
  // One byte now and then, for ever.
  answer = (response) => {
    const drip = setInterval(() => response.write('x'), 50)
    response.once('close', () => clearInterval(drip))
  }
  expect(await send({ responseMs: 1_000 })).toMatchObject({ kind: 'answered', response: { status: 200 } })
})

it('an answer that breaks off leaves it unknown', async () => {
  answer = (response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('x')
    setTimeout(() => response.destroy(), 50)
  }
  expect(await send()).toMatchObject({ kind: 'unknown' })
})
