import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { network, rule } from '../../test/fixtures/network-rules.ts'
import { Credential } from './credentials.ts'
import { LIMITS, type NetworkLimits } from './limits.ts'
import { RequestQueue } from './queue.ts'
import type { HeaderPair } from './queue-record.ts'
import type { SendOutcome } from './replay.ts'
import { compileRules } from './request-rule.ts'
import { PinnedResolver } from './resolver.ts'
import { Sender } from './send.ts'

let directory: string
let server: Server
let answer: (response: ServerResponse, asked: IncomingHttpHeaders) => void
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'puzzled-send-'))
  server = createServer((request, response) => {
    request.resume().on('end', () => answer(response, request.headers))
    response.on('error', () => undefined)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  rmSync(directory, { recursive: true })
})

const SECRET = 'sk-live-0123456789'
const TOKEN: Credential = new Credential(
  {
    placeholder: 'PUZZLED-TOKEN-1',
    source: { kind: 'environment', name: 'X' },
    hosts: ['127.0.0.1'],
    header: 'authorization',
    why: 'x',
  },
  SECRET,
)

async function send(
  limits: Partial<NetworkLimits> = {},
  headers: readonly HeaderPair[] = [],
): Promise<SendOutcome> {
  const { port } = server.address() as { port: number }
  const queue = await RequestQueue.open(join(directory, 'queue'))
  const rules = compileRules(
    network([rule('w', { hosts: ['127.0.0.1'], ports: [port], class: 'queue', addresses: ['127.0.0.1'] })]),
  )
  const merged = { ...LIMITS, ...limits }
  const resolver = new PinnedResolver()
  const sender = new Sender({ queue, rules, resolver, credentials: [TOKEN], limits: merged, ca: [] })
  const head = { method: 'POST', scheme: 'http', host: '127.0.0.1', port, target: '/', headers } as const
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

it('a request of which nothing could leave is not unknown', async () => {
  let asked = 0
  answer = (response) => {
    asked++
    response.end()
  }
  // No header can hold it, so nothing is written.
  expect(await send({}, [['x-name', 'snow ☃']])).toMatchObject({
    kind: 'not-sent',
    reason: expect.stringContaining('"x-name"'),
  })
  expect(asked).toBe(0)
  expect(await send({}, [['x-name', 'snow']])).toMatchObject({ kind: 'answered' })
})

it('an answer that breaks off leaves it unknown', async () => {
  answer = (response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('x')
    setTimeout(() => response.destroy(), 50)
  }
  expect(await send()).toMatchObject({ kind: 'unknown' })
})

const BEARER: readonly HeaderPair[] = [
  ['authorization', 'Bearer PUZZLED-TOKEN-1'],
  ['accept-encoding', 'gzip'],
  ['range', 'bytes=3-'],
]
const kept = (outcome: SendOutcome): string =>
  outcome.kind === 'answered' ? Buffer.from(outcome.response.body, 'base64').toString('latin1') : ''

it('keeps no part of a secret, wherever the beginning of an answer ends', async () => {
  const asked: unknown[] = []
  answer = (response, { authorization, range, 'accept-encoding': encoding }) => {
    asked.push(range, encoding)
    response.end(`${'x'.repeat(90)}${authorization?.slice(7)}${'y'.repeat(90)}`)
  }
  for (const keptResponseBytes of [95, 100, 107]) {
    const text = kept(await send({ keptResponseBytes }, BEARER))
    expect(text).toBe(`${'x'.repeat(90)}PUZZLED-TOKEN-1${'y'.repeat(90)}`.slice(0, keptResponseBytes))
  }
  expect(new Set(asked)).toEqual(new Set([undefined, 'identity']))
  // The control: an answer to a request without a secret is kept as it came.
  const plain = BEARER.map(([name, value]) => [name, value.replace('PUZZLED-TOKEN-1', SECRET)] as const)
  expect(kept(await send({ keptResponseBytes: 95 }, plain))).toBe(`${'x'.repeat(90)}sk-li`)
})

it('keeps nothing of an answer that cannot be searched for the secret', async () => {
  const bytes = gzipSync(`you sent ${SECRET}`)
  answer = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes)
  expect(await send({}, BEARER)).toMatchObject({ response: { status: 200, body: '', truncated: true } })
  expect(await send({}, [])).toMatchObject({ response: { body: bytes.toString('base64'), truncated: false } })
})
