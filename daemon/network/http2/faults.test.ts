import { afterEach, describe, expect, it } from 'vitest'
import { frame, numberFrame, TYPE } from './frames.ts'
import {
  data,
  GET,
  get,
  literal,
  NOTHING,
  PREFACE,
  post,
  RawAgent,
  say,
  setting,
  until,
} from './raw-agent.fixture.ts'

const { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, WINDOW_UPDATE, CONTINUATION } =
  TYPE
let agent: RawAgent | undefined
afterEach(() => agent?.close())

describe('a connection ends, with its code, when it', () => {
  it.each([
    ['does not begin as one', 1, [Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')]],
    ['begins without settings', 1, [PREFACE, frame(PING, 0, 0, Buffer.alloc(8))]],
  ])('%s', async (_, code, bytes) => {
    const open = await RawAgent.open()
    agent = open.send(...bytes)
    await until(() => open.goaway === code && open.closed)
  })

  it.each([
    ['sends a frame that is too long', 6, [frame(DATA, 0, 1, Buffer.alloc(16_385))]],
    ['sends a body to nobody', 1, [data(0, 'x')]],
    ['sends a body before its head', 1, [data(1, 'x')]],
    ['opens a stream with an even number', 1, [get(2)]],
    ['asks again on a stream that has ended', 5, [get(3), numberFrame(RST_STREAM, 3, 8), get(3)]],
    ['goes back to an older stream', 5, [get(5), get(3)]],
    ['promises', 1, [frame(PUSH_PROMISE, 4, 1, Buffer.alloc(4))]],
    ['continues nothing', 1, [frame(CONTINUATION, 4, 1, GET)]],
    ['interrupts a header block', 1, [get(1, 1), frame(PING, 0, 0, Buffer.alloc(8))]],
    ['continues another stream', 1, [get(1, 1), frame(CONTINUATION, 4, 3, NOTHING)]],
    [
      'sends a header block without end',
      11,
      Array.from({ length: 40 }, (_, n) => frame(n === 0 ? 1 : 9, 0, 1, NOTHING)),
    ],
    ['packs its headers wrongly', 9, [frame(HEADERS, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff]))]],
    ['fills a frame up with more than it is', 1, [post(1), frame(DATA, 8, 1, Buffer.from([9, 0]))]],
    ['resets what it never opened', 1, [numberFrame(RST_STREAM, 7, 8)]],
    ['resets without a code', 6, [get(1), frame(RST_STREAM, 0, 1, NOTHING)]],
    ['cuts settings off', 6, [frame(SETTINGS, 0, 0, Buffer.alloc(5))]],
    ['sets a stream', 1, [frame(SETTINGS, 0, 1, NOTHING)]],
    ['sets a window that is too large', 3, [frame(SETTINGS, 0, 0, setting(4, 2 ** 31))]],
    ['sets a frame that is too small', 1, [frame(SETTINGS, 0, 0, setting(5, 100))]],
    ['wants to be pushed to twice', 1, [frame(SETTINGS, 0, 0, setting(2, 2))]],
    ['pings too shortly', 6, [frame(PING, 0, 0, Buffer.alloc(7))]],
    ['makes room for nothing', 1, [numberFrame(WINDOW_UPDATE, 0, 0)]],
    ['makes more room than there can be', 3, [numberFrame(WINDOW_UPDATE, 0, 2 ** 31 - 1)]],
    ['depends on itself', 1, [frame(PRIORITY, 0, 3, Buffer.from([0, 0, 0, 3, 1]))]],
    ['chatters', 11, Array.from({ length: 3_000 }, () => frame(PING, 0, 0, Buffer.alloc(8)))],
    ['sends bodies of nothing', 11, [post(1), ...Array.from({ length: 3_000 }, () => data(1, ''))]],
    [
      'opens and resets',
      11,
      Array.from({ length: 3_000 }, (_, n) =>
        Buffer.concat([get(2 * n + 1), numberFrame(RST_STREAM, 2 * n + 1, 8)]),
      ),
    ],
  ])('%s', async (_, code, frames) => {
    const open = await RawAgent.open()
    agent = open.greet(...frames)
    await until(() => open.goaway === code && open.closed)
    expect(open.denied.at(-1)).toMatchObject({ rule: code === 11 ? 'too-much-chatter' : 'bad-connection' })
  })

  it('sends more than there is room for, and when it does not read what it is told', async () => {
    const open = await RawAgent.open()
    agent = open.greet(post(1), post(3), post(5), post(7), post(9))
    for (let n = 0; n < 70; n++) open.send(data(1 + 2 * (n % 5), Buffer.alloc(16_384)))
    await until(() => open.goaway === 3)
    agent.close()
    const deaf = await RawAgent.open((_from, to) => say(to, ''), { chatter: 1e6, unreadBytes: 20_000 })
    agent = deaf.greet()
    deaf.socket.pause()
    const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))))
    while (deaf.denied.length === 0) {
      deaf.send(pings)
      await new Promise((done) => setImmediate(done))
    }
    expect(deaf.denied[0]?.message).toMatch(/not read/)
  })
})

describe('a stream ends, with its code, and the connection goes on, when it', () => {
  it.each([
    ['has no method', 1, [frame(HEADERS, 5, 1, Buffer.from('878401 0161'.replace(' ', ''), 'hex'))]],
    ['has a name in capitals', 1, [frame(HEADERS, 5, 1, Buffer.concat([GET, literal('A', 'b')]))]],
    [
      'has a header of HTTP/1.1',
      1,
      [frame(HEADERS, 5, 1, Buffer.concat([GET, literal('connection', 'close')]))],
    ],
    ['has a line in a value', 1, [frame(HEADERS, 5, 1, Buffer.concat([GET, literal('a', 'b\r\nc: d')]))]],
    ['has a blank around a value', 1, [frame(HEADERS, 5, 1, Buffer.concat([GET, literal('a', ' b')]))]],
    ['has a pseudo header twice', 1, [frame(HEADERS, 5, 1, Buffer.concat([Buffer.from([0x82]), GET]))]],
    [
      'has a pseudo header at the end',
      1,
      [frame(HEADERS, 5, 1, Buffer.concat([GET, literal('a', 'b'), literal(':path', '/')]))],
    ],
    ['has two lengths', 1, [post(1, literal('content-length', '1'), literal('content-length', '2'))]],
    ['is longer than it says', 1, [post(1, literal('content-length', '1')), data(1, 'ab')]],
    ['is shorter than it says', 1, [post(1, literal('content-length', '3')), data(1, 'ab', true)]],
    ['goes on behind its end', 5, [get(1), data(1, 'x')]],
    ['has trailers that do not end it', 1, [post(1), frame(HEADERS, 4, 1, literal('a', 'b'))]],
    ['has a pseudo header in its trailers', 1, [post(1), frame(HEADERS, 5, 1, literal(':path', '/x'))]],
    ['makes room for nothing', 1, [post(1), numberFrame(WINDOW_UPDATE, 1, 0)]],
    [
      'sends more than there is room for',
      3,
      [post(1), ...Array.from({ length: 17 }, () => data(1, Buffer.alloc(16_384)))],
    ],
  ])('%s', async (_, code, frames) => {
    const open = await RawAgent.open((from, to) => {
      if (from.method === 'GET') setTimeout(() => say(to, 'late'), 50)
    })
    agent = open.greet(...frames)
    await until(() => open.reset(1) === code)
    // What the agent sent before it knew is not held against it.
    open.send(numberFrame(WINDOW_UPDATE, 1, 5), get(11))
    await until(() => open.body(11).ended)
    expect([open.goaway, open.body(11).bytes.toString()]).toEqual([undefined, 'late'])
  })

  it('is one too many', async () => {
    agent = (await RawAgent.open(undefined, { streams: 2 })).greet(get(1), get(3), get(5))
    await until(() => agent?.reset(5) === 7)
    expect(agent.served.length).toBe(2)
  })
})
