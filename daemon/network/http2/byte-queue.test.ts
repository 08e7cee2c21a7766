import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ByteQueue } from './byte-queue.ts'

it('gives back what it was given, in its order', () => {
  const piece = fc.uint8Array({ maxLength: 6_000 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.constant('take' as const))), (acts) => {
      const queue = new ByteQueue()
      const [into, out]: [Buffer[], Buffer[]] = [[], []]
      for (const act of acts) {
        if (act !== 'take') {
          queue.push(act)
          into.push(act)
        } else out.push(queue.take() ?? Buffer.alloc(0))
      }
      out.push(queue.all())
      expect(Buffer.concat(out).equals(Buffer.concat(into))).toBe(true)
      expect(queue.length).toBe(0)
    }),
  )
})

it('holds about as much as it was given, however small the pieces were and whatever they were cut from', () => {
  const queue = new ByteQueue()
  for (let n = 0; n < 20_000; n++) queue.push(Buffer.allocUnsafeSlow(65_536).subarray(7, 8))
  const held = new Set<ArrayBufferLike>()
  let pieces = 0
  for (let piece = queue.take(); piece !== undefined; piece = queue.take()) {
    held.add(piece.buffer)
    pieces++
  }
  expect([...held].reduce((sum, buffer) => sum + buffer.byteLength, 0)).toBeLessThan(64_000)
  expect(pieces).toBeLessThan(20)
})
