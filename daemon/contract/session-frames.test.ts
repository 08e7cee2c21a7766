import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FrameReader, frame, SESSION_FRAMES, sizeFrame } from './session-frames.ts'

const kinds = Object.values(SESSION_FRAMES)

describe('frames of a session', () => {
  it('come out as they went in, however the stream is cut', () => {
    const frames = fc.array(fc.record({ kind: fc.constantFrom(...kinds), bytes: fc.uint8Array() }))
    fc.assert(
      fc.property(frames, fc.array(fc.nat(64), { minLength: 1 }), (sent, cuts) => {
        const wire = Buffer.concat(sent.map(({ kind, bytes }) => frame(kind, bytes)))
        const reader = new FrameReader()
        const got = []
        for (let at = 0, turn = 0; at < wire.length; turn++) {
          const length = (cuts[turn % cuts.length] ?? 0) + 1
          got.push(...reader.push(wire.subarray(at, at + length)))
          at += length
        }
        expect(got.map(({ kind, bytes }) => ({ kind, bytes: new Uint8Array(bytes) }))).toEqual(
          sent.map(({ kind, bytes }) => ({ kind, bytes: new Uint8Array(bytes) })),
        )
      }),
    )
  })

  it('are refused when they are none', () => {
    expect(() => new FrameReader().push(Buffer.from('GET / HTTP/1.1'))).toThrow('no frame')
    expect(() => new FrameReader().push(Buffer.from([0x69, 0xff, 0xff, 0xff, 0xff]))).toThrow('no frame')
  })

  it('carry the size of a screen', () => {
    const [size] = new FrameReader().push(sizeFrame(111, 33))
    expect([size?.kind, size?.bytes.readUInt16BE(0), size?.bytes.readUInt16BE(2)]).toEqual(['w', 111, 33])
  })
})
