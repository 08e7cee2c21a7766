import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { AgentRequest, AgentResponse } from '../agent-request.ts'
import { frame, numberFrame, TYPE } from './frames.ts'
import { GET, literal, POST, RawAgent } from './raw-agent.fixture.ts'

const byte = fc.integer({ min: 0, max: 255 })
const stream = fc.constantFrom(0, 1, 1, 3, 3, 5, 7, 9, 2)
const head = fc
  .tuple(
    fc.constantFrom(GET, POST, Buffer.from([0x82])),
    fc.array(
      fc.tuple(
        fc.constantFrom('a', 'content-length', ':path', 'expect', 'B'),
        fc.constantFrom('', '3', 'x'.repeat(5_000)),
      ),
    ),
  )
  .map(([start, fields]) =>
    Buffer.concat([start, ...fields.map(([name, value]) => literal(name, value))]).subarray(0, 16_384),
  )
/** What an agent can say, as it ought to be, a little wrong, or as it comes. */
const said = fc.oneof(
  fc
    .tuple(stream, head, fc.constantFrom(0, 1, 4, 5, 12, 36))
    .map(([id, block, flags]) => frame(TYPE.HEADERS, flags, id, block)),
  fc
    .tuple(stream, fc.integer({ max: 5_000, min: 0 }), fc.constantFrom(0, 1, 8))
    .map(([id, size, flags]) => frame(TYPE.DATA, flags, id, Buffer.alloc(size, 1))),
  fc
    .tuple(stream, fc.integer({ min: 0, max: 2 ** 31 - 1 }))
    .map(([id, more]) => numberFrame(TYPE.WINDOW_UPDATE, id, more)),
  fc.tuple(stream, byte).map(([id, code]) => numberFrame(TYPE.RST_STREAM, id, code)),
  fc.tuple(byte, fc.integer({ min: 0, max: 70_000 })).map(([name, value]) => {
    const payload = Buffer.alloc(6)
    payload.writeUInt16BE(name % 8)
    payload.writeUInt32BE(value, 2)
    return frame(TYPE.SETTINGS, 0, 0, payload)
  }),
  fc
    .tuple(byte, byte, stream, fc.uint8Array({ maxLength: 40 }))
    .map(([type, flags, id, bytes]) => frame(type % 12, flags, id, Buffer.from(bytes))),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
)

/** What the gate does at its end, one way or the other. */
function act(kind: number, from: AgentRequest, to: AgentResponse): void {
  if (kind === 0) to.destroy()
  if (kind === 1) from.discard()
  if (kind === 2) return
  to.proceed()
  to.head(kind === 3 ? 204 : 200, kind === 4 ? [['content-length', '10']] : [['x', 'y'.repeat(kind * 4_000)]])
  if (kind > 4) to.write(Buffer.alloc(kind * 20_000))
  if (kind === 5) from.body?.resume()
  if (kind === 6) setImmediate(() => to.end([['t', 'u']]))
  else if (kind !== 7) to.end()
}

/**
 * Node's own HTTP/2 ended the process in one of some hundred such conversations, with an assertion in its native part.
 */
it('whatever an agent says, the gate goes on: an answer, the end of a stream, or the end of the connection', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(said, { maxLength: 25 }),
      fc.array(fc.integer({ min: 0, max: 8 })),
      fc.nat(4),
      async (frames, acts, way) => {
        let served = 0
        const open = await RawAgent.open((from, to) =>
          act(acts[served++ % Math.max(1, acts.length)] ?? 2, from, to),
        )
        open.greet()
        for (const bytes of frames) {
          if (open.socket.destroyed) break
          open.send(bytes)
          if (way === 0) await new Promise((done) => setImmediate(done))
        }
        if (way === 1) open.agents.close()
        if (way === 2) open.socket.end()
        if (way === 3) open.socket.destroy()
        await new Promise((done) => setTimeout(done, way))
        open.agents.tick(performance.now() + 4_000_000)
        open.close()
      },
    ),
    { numRuns: 150 },
  )
  const after = await RawAgent.open((_from, to) => {
    to.head(200, [])
    to.end()
  })
  after.greet(frame(TYPE.HEADERS, 5, 1, GET))
  await expect.poll(() => after.body(1).ended).toBe(true)
  after.close()
})
