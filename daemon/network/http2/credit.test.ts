import { connect as dial } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { type Frame, FrameReader, frame, numberFrame, TYPE } from './frames.ts'
import { GET, literal, NOTHING, POST, PREFACE, RawAgent } from './raw-agent.fixture.ts'
import { TurnClock } from './turns.ts'

const { DATA, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE } = TYPE
let agent: RawAgent | undefined
afterEach(() => agent?.close())

const until = (is: () => boolean): Promise<void> =>
  expect.poll(is, { timeout: 10_000, interval: 5 }).toBe(true)
const data = (stream: number, bytes: Buffer, flags = 0): Buffer => frame(DATA, flags, stream, bytes)
const room = (open: RawAgent, stream: number): number =>
  open.of(WINDOW_UPDATE, stream).reduce((sum, one) => sum + one.payload.readUInt32BE(0), 0)

describe('the room of a connection', () => {
  it('comes back from a request that is taken back before it is served', async () => {
    const open = await RawAgent.open()
    agent = open.greet()
    const frames: Buffer[] = []
    for (let id = 1; id < 400; id += 2)
      frames.push(frame(HEADERS, 4, id, POST), data(id, Buffer.alloc(10_000)), numberFrame(RST_STREAM, id, 8))
    open.send(...frames)
    await until(() => room(open, 0) > 2_000_000)
    // Most of them came in one piece with their end.
    expect(open.served.length).toBeLessThan(200)
    expect(open.goaway).toBeUndefined()
  })

  it('comes back from a body that nobody wants behind its answer', async () => {
    const open = await RawAgent.open((_from, to) => {
      to.head(403, [['content-length', '2']])
      to.write(Buffer.from('no'))
      to.end()
    })
    agent = open.greet(frame(HEADERS, 4, 1, POST))
    await until(() => open.body(1).ended)
    for (let n = 0; n < 12; n++) {
      for (let at = 0; at < 16; at++) open.send(data(1, Buffer.alloc(16_384)))
      await until(() => room(open, 1) >= (n + 1) * 262_144)
    }
    open.send(data(1, Buffer.alloc(1), 1), frame(PING, 0, 0, Buffer.alloc(8)))
    await until(() => open.of(PING).length === 1)
    expect([open.reset(1), open.goaway]).toEqual([undefined, undefined])
  })
})

it('begins no more requests in one turn than others can wait for', async () => {
  let [turn, most] = [0, 0]
  const open = await RawAgent.open((_from, to) => {
    if (turn++ === 0)
      setImmediate(() => {
        turn = 0
      })
    most = Math.max(most, turn)
    to.head(204, [])
    to.end()
  })
  const all = Array.from({ length: 100 }, (_, n) => frame(HEADERS, 5, 2 * n + 1, GET))
  agent = open.greet(...all)
  await until(() => open.body(199).ended)
  expect(most).toBeLessThanOrEqual(32)
})

it('refuses a head that ends its stream and says that a body follows', async () => {
  const open = await RawAgent.open()
  agent = open.greet(frame(HEADERS, 5, 1, Buffer.concat([POST, literal('content-length', '5')])))
  await until(() => open.reset(1) === 1)
  expect(open.served).toEqual([])
})

it('opens no more streams in all connections together than a branch may', async () => {
  const open = await RawAgent.open(() => undefined, { streamsInAll: 3 })
  agent = open.greet(frame(HEADERS, 5, 1, GET), frame(HEADERS, 5, 3, GET))
  await until(() => open.served.length === 2)
  const frames: Frame[] = []
  const reader = new FrameReader()
  const other = dial(open.socket.remotePort ?? 0, '127.0.0.1')
  other.on('error', () => undefined)
  other.on('data', (bytes) => reader.push(bytes, (one) => frames.push(one) > 0))
  const refused = (): number[] => frames.filter(({ type }) => type === RST_STREAM).map(({ stream }) => stream)
  try {
    const get = (id: number): Buffer => frame(HEADERS, 5, id, GET)
    other.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, NOTHING), get(1), get(3)]))
    await until(() => refused().length === 1)
    open.send(numberFrame(RST_STREAM, 1, 8))
    await until(() => open.served[0]?.to.gone === true)
    other.write(get(5))
    await until(() => open.served.length === 4)
    other.write(get(7))
    await until(() => refused().length === 2)
    expect(refused()).toEqual([3, 7])
  } finally {
    other.destroy()
  }
})

it('has a turn of the loop together with the other connections of its branch', async () => {
  const clock = new TurnClock()
  const until = clock.until()
  await Promise.resolve()
  expect(clock.until()).toBe(until)
  await turn()
  expect(clock.until()).toBeGreaterThan(until)
})
