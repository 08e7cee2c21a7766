import { createServer, connect as dial } from 'node:net'
import { expect, it } from 'vitest'
import { Http2Agents } from './http2-agent.ts'
import { Resets } from './http2-frames.ts'
import { LIMITS, type NetworkLimits } from './limits.ts'

const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
const [HEADERS, RESET, SETTINGS, CONTINUATION] = [1, 3, 4, 9]
const [END_STREAM, END_HEADERS] = [1, 4]
/** `:method GET`, `:scheme http`, `:path /`, `:authority a`, in HPACK without a table. */
const GET = Buffer.from([0x82, 0x86, 0x84, 0x01, 0x01, 0x61])

interface Flooded {
  /** How many headers came with each request that was served. */
  readonly served: number[]
  readonly denied: string[]
  closed: boolean
  send(bytes: Buffer): void
}

async function flooded(
  limits: Partial<NetworkLimits>,
  flood: (seen: Flooded) => Promise<void>,
): Promise<Flooded> {
  const seen: Flooded = { served: [], denied: [], closed: false, send: () => undefined }
  const agents = new Http2Agents(
    { ...LIMITS, ...limits },
    {
      serve: (from) => void seen.served.push(from.headers.length),
      denied: (_subject, { rule }) => void seen.denied.push(rule),
    },
  )
  const server = createServer((taken) => agents.take(taken))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const agent = dial((server.address() as { port: number }).port, '127.0.0.1')
  agent.on('error', () => undefined).on('close', () => Object.assign(seen, { closed: true }))
  agent.resume()
  seen.send = (bytes) => void agent.write(bytes)
  seen.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
  seen.send(frame(SETTINGS, 0, 0, Buffer.alloc(0)))
  try {
    await flood(seen)
    return seen
  } finally {
    agents.close()
    agent.destroy()
    server.close()
  }
}

/** In groups, each of which was seen before the next one goes. Node itself bears a thousand. */
const RESETS = 900
async function takenBack(seen: Flooded): Promise<void> {
  const cancelled = Buffer.from([0, 0, 0, 8])
  for (let sent = 0; sent < RESETS && !seen.closed; sent += 50) {
    for (let stream = 2 * sent + 1; stream < 2 * (sent + 50); stream += 2)
      seen.send(
        Buffer.concat([
          frame(HEADERS, END_STREAM | END_HEADERS, stream, GET),
          frame(RESET, 0, stream, cancelled),
        ]),
      )
    await expect.poll(() => seen.closed || seen.served.length >= sent + 50).toBe(true)
  }
}

it('a connection that takes back its requests without end is closed', async () => {
  const seen = await flooded({ resets: 100, resetsPerSecond: 0 }, takenBack)
  expect(seen.served.length).toBeLessThan(300)
  expect([seen.closed, seen.denied]).toEqual([true, ['too-many-resets']])
})

it('control: without the ceiling it takes back as many as it likes', async () => {
  const seen = await flooded({ resets: 10_000 }, takenBack)
  expect([seen.served.length, seen.closed, seen.denied]).toEqual([RESETS, false, []])
})

it('now and then a request may be taken back, for as long as one likes', () => {
  let now = 0
  const resets = new Resets(3, 2, () => now)
  const counted = (times: number): boolean[] => Array.from({ length: times }, () => resets.count())
  expect(counted(4)).toEqual([true, true, true, false])
  now = 60_000
  expect(counted(4)).toEqual([true, true, true, false])
  for (let second = 0; second < 100; second++) {
    now += 1_000
    expect(counted(1)).toEqual([true])
  }
})

/** `accept-encoding: gzip, deflate`, which takes one byte of HPACK, as often as it fits into some frames. */
const many = (bytes: number): Buffer => Buffer.alloc(bytes, 0x90)

const headersIn = (frames: number, bytes: number) => async (seen: Flooded) => {
  seen.send(frame(HEADERS, END_STREAM, 1, Buffer.concat([GET, many(bytes)])))
  for (let one = 1; one < frames && !seen.closed; one++)
    seen.send(frame(CONTINUATION, one === frames - 1 ? END_HEADERS : 0, 1, many(bytes)))
  // Another request behind it says that it was read.
  seen.send(frame(HEADERS, END_STREAM | END_HEADERS, 3, GET))
  await expect.poll(() => seen.closed || seen.served.some((headers) => headers < 10)).toBe(true)
}

it('headers that unfold to many times their size are no request', async () => {
  const { served } = await flooded({}, headersIn(4, 4_000))
  expect(served.filter((headers) => headers > 200)).toEqual([])
})

it('control: without ceilings they are served, thousands in one request', async () => {
  const none = { headerCount: 1_000_000, headerBytes: 1_000_000_000 }
  const { served } = await flooded(none, headersIn(4, 4_000))
  expect(served.filter((headers) => headers > 10_000)).toHaveLength(1)
})

it('headers without end are ended by Node, which has a ceiling of frames of its own', async () => {
  const none = { headerCount: 1_000_000, headerBytes: 1_000_000_000 }
  // As many as the control above, in more frames: whoever serves these has no such ceiling, and needs one here.
  const { served, closed } = await flooded(none, headersIn(64, 250))
  expect([closed, served]).toEqual([true, []])
})
