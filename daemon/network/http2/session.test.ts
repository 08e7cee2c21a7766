import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AgentRequest } from '../agent-request.ts'
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

const { DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } = TYPE
let agent: RawAgent | undefined
afterEach(() => agent?.close())

describe('a request', () => {
  it('is handed over as it was asked, with the body that came with it', async () => {
    const open = await RawAgent.open((from, to) => say(to, from.whole ?? NOTHING))
    agent = open.greet(
      post(1, literal('content-length', '5'), literal('cookie', 'a=1'), literal('cookie', 'b=2')),
      data(1, 'hello', true),
    )
    await until(() => open.body(1).ended)
    expect(open.body(1).bytes.toString()).toBe('hello')
    expect(open.served[0]?.from).toMatchObject({
      method: 'POST',
      target: '/',
      complete: true,
      body: undefined,
      http2: true,
    })
    expect(open.served[0]?.from.headers).toEqual([
      [':method', 'POST'],
      [':scheme', 'https'],
      [':path', '/'],
      [':authority', 'a'],
      ['content-length', '5'],
      ['cookie', 'a=1'],
      ['cookie', 'b=2'],
    ])
  })

  it('says the same however it is cut', async () => {
    const said = [
      PREFACE,
      frame(SETTINGS, 0, 0, setting(4, 70_000)),
      frame(HEADERS, 1, 1, GET.subarray(0, 3)),
      frame(CONTINUATION, 4, 1, GET.subarray(3)),
      post(3),
      frame(DATA, 9, 3, Buffer.from([2, 65, 66, 0, 0])),
    ]
    for (const size of [1, 2, 3, 7, 10, 33, 1_000]) {
      const open = await RawAgent.open((from, to) => {
        if (from.body === undefined) say(to, from.whole ?? 'none')
        else
          from.body.toArray().then(
            (all) => say(to, Buffer.concat(all as Buffer[])),
            () => undefined,
          )
      })
      agent = open
      const bytes = Buffer.concat(said)
      for (let at = 0; at < bytes.length; at += size) {
        open.socket.write(bytes.subarray(at, at + size))
        await new Promise((done) => setImmediate(done))
      }
      await until(() => open.body(1).ended && open.body(3).ended)
      expect([open.body(1).bytes.toString(), open.body(3).bytes.toString()]).toEqual(['none', 'AB'])
      open.close()
    }
  })

  it('waits with its body until somebody reads it', async () => {
    let asked: AgentRequest | undefined
    const open = await RawAgent.open((from) => {
      asked = from
    })
    agent = open.greet(post(1))
    await until(() => asked !== undefined)
    for (let n = 0; n < 16; n++) open.send(data(1, Buffer.alloc(16_384, n)))
    open.send(frame(PING, 0, 0, Buffer.alloc(8)))
    await until(() => open.of(PING).length === 1)
    expect(open.of(WINDOW_UPDATE, 1)).toEqual([])
    let got = 0
    asked?.body?.on('data', (bytes: Buffer) => {
      got += bytes.length
    })
    await until(() => got === 262_144)
    await until(
      () => open.of(WINDOW_UPDATE, 1).reduce((sum, one) => sum + one.payload.readUInt32BE(0), 0) > 131_071,
    )
    open.send(data(1, 'end', true))
    await until(() => asked?.body?.readableEnded === true)
    expect(got).toBe(262_147)
  })

  it('gives back the room that an unread body took', async () => {
    const open = await RawAgent.open((_from, to) => say(to, 'no'))
    agent = open.greet()
    for (let n = 0; n < 200; n++) open.send(post(2 * n + 1), data(2 * n + 1, Buffer.alloc(16_000), true))
    await until(() => open.body(399).ended)
    expect(open.goaway).toBeUndefined()
    expect(
      open.of(WINDOW_UPDATE, 0).reduce((sum, one) => sum + one.payload.readUInt32BE(0), 0),
    ).toBeGreaterThan(3_000_000)
  })

  it('may end behind its answer, but not go on for ever', async () => {
    const open = await RawAgent.open(
      (from, to) => {
        say(to, 'no')
        from.discard()
      },
      { drainedBytes: 40_000 },
    )
    agent = open.greet(post(1), post(3))
    await until(() => open.body(1).ended && open.body(3).ended)
    open.send(data(1, Buffer.alloc(16_000)), data(1, '', true))
    for (let n = 0; n < 4; n++) open.send(data(3, Buffer.alloc(16_000)))
    await until(() => open.reset(3) === 0)
    expect([open.reset(1), open.goaway]).toEqual([undefined, undefined])
  })

  it('with a head that is too large, or that wants a tunnel, is answered', async () => {
    const many = Array.from({ length: 300 }, (_, n) => literal(`a${n}`, 'b'))
    const connect = Buffer.concat([literal(':method', 'CONNECT'), literal(':authority', 'a:443')])
    const open = await RawAgent.open((_from, to) => say(to, 'served'))
    agent = open.greet(
      frame(HEADERS, 5, 1, Buffer.concat([GET, ...many])),
      frame(HEADERS, 4, 3, connect),
      get(5),
    )
    await until(() => open.body(5).ended && open.body(3).ended && open.body(1).ended)
    expect(open.denied.map(({ status, rule }) => [status, rule])).toEqual([
      [431, 'headers-too-large'],
      [400, 'nested-connect'],
    ])
    expect(open.body(1).bytes.toString()).toContain('urn:puzzled:denial:headers-too-large')
    expect(open.body(5).bytes.toString()).toBe('served')
  })

  it('that is reset, or whose agent goes away, is over for both', async () => {
    let gone = 0
    const errors: Error[] = []
    const open = await RawAgent.open((from, to) => {
      to.onGone(() => void gone++)
      from.body?.on('error', (error) => errors.push(error))
    })
    agent = open.greet(post(1), post(3))
    await until(() => open.served.length === 2)
    open.send(numberFrame(RST_STREAM, 1, 8))
    await until(() => gone === 1 && errors.length === 1)
    open.socket.destroy()
    await until(() => gone === 2 && errors.length === 2)
    expect(open.served.map(({ to }) => to.gone)).toEqual([true, true])
  })
})

describe('an answer', () => {
  it('takes no more than the agent has room for, and says when there is more', async () => {
    let told = 0
    const open = await RawAgent.open((_from, to) => {
      to.head(200, [])
      expect(to.write(Buffer.alloc(50, 1))).toBe(false)
      to.onDrain(() => {
        told++
        to.end()
      })
    })
    agent = open.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 10)), get(1))
    await until(() => open.body(1).bytes.length === 10)
    open.send(numberFrame(WINDOW_UPDATE, 1, 20))
    await until(() => open.body(1).bytes.length === 30)
    expect(told).toBe(0)
    open.send(frame(SETTINGS, 0, 0, setting(4, 1_000)))
    await until(() => open.body(1).ended)
    expect([open.body(1).bytes.length, told]).toEqual([50, 1])
  })

  it('waits for its turn: a large one does not keep a small one waiting', async () => {
    const open = await RawAgent.open((_from, to) =>
      say(to, open.served.length === 1 ? Buffer.alloc(500_000) : 'small'),
    )
    const room = [frame(SETTINGS, 0, 0, setting(4, 1_000_000)), numberFrame(WINDOW_UPDATE, 0, 1_000_000)]
    agent = open.greet(...room, get(1), get(3))
    await until(() => open.body(1).ended && open.body(3).ended)
    const order = open.of(DATA).map((one) => one.stream)
    expect(order.indexOf(3)).toBeLessThan(order.lastIndexOf(1))
  })

  it('ends with its last piece where it says how long it is', async () => {
    const open = await RawAgent.open((_from, to) => say(to, 'hello', [['content-length', '5']]))
    agent = open.greet(get(1))
    await until(() => open.body(1).ended)
    expect(open.of(DATA, 1).map((one) => [one.flags, one.payload.toString()])).toEqual([[1, 'hello']])
  })

  it('of a HEAD, and one without content, has no body', async () => {
    const open = await RawAgent.open((_from, to) => {
      to.head(200, [['content-length', '5']])
      to.write(Buffer.from('hello'))
      to.end()
    })
    agent = open.greet(frame(HEADERS, 5, 1, Buffer.concat([literal(':method', 'HEAD'), GET.subarray(1)])))
    await until(() => open.body(1).ended)
    expect(open.body(1).bytes.length).toBe(0)
  })

  it('can have trailers', async () => {
    const open = await RawAgent.open((_from, to) => {
      to.head(200, [])
      to.write(Buffer.from('x'))
      to.end([['Grpc-Status', '0']])
    })
    agent = open.greet(get(1))
    await until(() => open.body(1).ended)
    const [, trailers] = open.of(HEADERS, 1)
    expect([trailers?.flags, trailers?.payload.toString('latin1')]).toEqual([
      5,
      expect.stringContaining('grpc-status'),
    ])
  })

  it('with a head of many frames is one', async () => {
    const open = await RawAgent.open((_from, to) => say(to, 'x', [['a', 'b'.repeat(40_000)]]))
    agent = open.greet(get(1))
    await until(() => open.body(1).ended)
    expect(open.of(CONTINUATION, 1).map((one) => one.flags)).toEqual([0, 4])
  })

  it('with a header that is none is not written', async () => {
    const open = await RawAgent.open((_from, to) => {
      expect(() => to.head(200, [['a b', 'c']])).toThrow(/cannot be written/)
      expect(() => to.head(200, [['a', 'b\r\nc']])).toThrow(/cannot be written/)
      to.destroy()
    })
    agent = open.greet(get(1))
    await until(() => open.reset(1) === 2)
  })

  it('is told to go on before it is given', async () => {
    const open = await RawAgent.open((from, to) => {
      to.proceed()
      from.body?.once('data', () => say(to, 'x'))
    })
    agent = open.greet(post(1, literal('expect', '100-continue')))
    await until(() => open.of(HEADERS, 1).length === 1)
    open.send(data(1, 'y', true))
    await until(() => open.body(1).ended)
  })
})

describe('a connection that nobody needs', () => {
  it('ends after a while: at once without a word, later between requests, not while one is answered', async () => {
    const idle = await RawAgent.open()
    idle.send(PREFACE)
    await until(() => idle.of(SETTINGS).length === 1)
    idle.agents.tick(performance.now() + 14_000)
    expect(idle.goaway).toBeUndefined()
    idle.agents.tick(performance.now() + 16_000)
    await until(() => idle.goaway === 0)
    idle.close()
    const busy = await RawAgent.open()
    agent = busy.greet(get(1))
    await until(() => busy.served.length === 1)
    busy.agents.tick(performance.now() + 70_000)
    const [one] = busy.served
    if (one !== undefined) say(one.to, 'x')
    await until(() => busy.body(1).ended)
    expect(busy.goaway).toBeUndefined()
    busy.agents.tick(performance.now() + 70_000)
    await until(() => busy.goaway === 0 && busy.closed)
  })

  it('goes on while it is told something now and then', async () => {
    const open = await RawAgent.open((_from, to) => to.head(200, []))
    agent = open.greet(get(1))
    await until(() => open.served.length === 1)
    const clock = vi.spyOn(performance, 'now')
    onTestFinished(() => clock.mockRestore())
    const now = performance.now()
    clock.mockReturnValue(now + 3_599_000)
    open.served[0]?.to.write(Buffer.from('event'))
    clock.mockRestore()
    open.agents.tick(now + 3_602_000)
    await until(() => open.body(1).bytes.length === 5)
    expect([open.served[0]?.to.gone, open.closed]).toEqual([false, false])
  })

  it('ends when its agent says goodbye, behind the answers that are under way', async () => {
    const open = await RawAgent.open((_from, to) => void setTimeout(() => say(to, 'late'), 30))
    agent = open.greet(get(1), frame(GOAWAY, 0, 0, Buffer.alloc(8)))
    await until(() => open.closed)
    expect(open.body(1).bytes.toString()).toBe('late')
  })

  it('tells an agent whose body does not come', async () => {
    const errors: Error[] = []
    const open = await RawAgent.open((from) => from.body?.on('error', (error) => errors.push(error)))
    agent = open.greet(post(1))
    await until(() => open.served.length === 1)
    open.send(data(1, 'x'))
    const now = performance.now()
    open.agents.tick(now + 3_599_000)
    open.agents.tick(now + 3_600_001)
    await until(() => errors.length === 1 || open.closed)
  })
})
