import { connect } from 'node:http2'
import { createServer, connect as dial } from 'node:net'
import type { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { NetworkDenied } from './denial.ts'
import { Http2Agents } from './http2-agent.ts'
import { LIMITS } from './limits.ts'

/** What an agent is told, of an answer with these headers. */
async function answered(headers: readonly (readonly [string, string])[], status = 200): Promise<unknown> {
  const agents = new Http2Agents(LIMITS, {
    serve: (_from, to) => {
      try {
        to.head(status, headers)
      } catch (error) {
        to.head(error instanceof NetworkDenied ? error.status : 500, [])
      }
      to.end()
    },
    denied: () => undefined,
  })
  const server = createServer((socket) => agents.take(socket))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  const session = connect(`http://127.0.0.1:${port}`, { maxHeaderListPairs: 2_000 })
  session.on('error', () => undefined)
  try {
    const stream = session.request({ ':path': '/' })
    return await new Promise((done) => stream.on('response', done).on('error', done).on('close', done))
  } finally {
    agents.close()
    session.destroy()
    server.close()
  }
}

it('passes on every value of a header', async () => {
  const told = await answered([
    ['x-one', 'a'],
    ['set-cookie', 'a=1'],
    ['x-one', 'b'],
    ['set-cookie', 'b=2'],
    ['set-cookie', 'c=3'],
  ])
  expect(told).toMatchObject({ ':status': 200, 'x-one': 'a, b', 'set-cookie': ['a=1', 'b=2', 'c=3'] })
})

it('a status that HTTP/2 does not have is refused before anything was said', async () => {
  expect(await answered([], 599)).toMatchObject({ ':status': 599 })
  for (const status of [600, 999]) expect(await answered([], status)).toMatchObject({ ':status': 502 })
})

it('copies nothing for each time that a header is said', async () => {
  let copied = 0
  const original = Array.prototype.flat
  Array.prototype.flat = function (this: unknown[], ...rest: []) {
    if (Array.isArray(this[0])) copied += this[0].length
    return original.apply(this, rest)
  } as typeof original
  try {
    await answered(Array.from({ length: 2_000 }, () => ['a', ''] as const))
  } finally {
    Array.prototype.flat = original
  }
  expect(copied).toBe(0)
})

const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
/** `:method POST`, `:scheme http`, `:path /`, `:authority a`, in HPACK without a table. */
const POST = Buffer.concat([Buffer.from([0x83, 0x86, 0x84, 0x01, 0x01]), Buffer.from('a')])

/** What becomes of 20,000 frames of one byte, whose body is read or not: bytes that wait, and how the stream ended. */
async function tinyFrames(
  read: boolean,
): Promise<{ waiting: number; got: number; reset: number | undefined }> {
  const seen = { waiting: 0, got: 0, reset: undefined as number | undefined }
  let body: Readable | undefined
  const agents = new Http2Agents(LIMITS, {
    serve: (from) => {
      body = from.body
      if (read)
        body?.on('data', (bytes: Buffer) => {
          seen.got += bytes.length
        })
    },
    denied: () => undefined,
  })
  const server = createServer((socket) => agents.take(socket))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const socket = dial((server.address() as { port: number }).port, '127.0.0.1')
  socket.on('data', (bytes: Buffer) => {
    for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3))
      if (bytes[at + 3] === 3) seen.reset = bytes.readUInt32BE(at + 9)
  })
  try {
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(Buffer.concat([frame(4, 0, 0, Buffer.alloc(0)), frame(1, 4, 1, POST)]))
    const one = frame(0, 0, 1, Buffer.from('x'))
    for (let sent = 0; sent < 20_000; sent += 1_000)
      socket.write(Buffer.concat(Array.from({ length: 1_000 }, () => one)))
    await expect.poll(() => seen.got === 20_000 || seen.reset !== undefined).toBe(true)
    seen.waiting = body?.readableLength ?? 0
    return seen
  } finally {
    agents.close()
    socket.destroy()
    server.close()
  }
}

it('ends a stream that fills the memory with tiny frames which nobody reads', async () => {
  expect(await tinyFrames(false)).toMatchObject({ reset: 11, got: 0 })
})

it('takes any number of tiny frames that are read', async () => {
  expect(await tinyFrames(true)).toMatchObject({ reset: undefined, got: 20_000, waiting: 0 })
})
