import { describe, expect, it } from 'vitest'
import type { SpawnOp } from '../contract/spawn.ts'
import { type Birth, type Layout, layOut, layOutBirth, readOutcome } from './clone-layout.ts'
import { NR } from './uapi/index.ts'

/** Gives every array an address of its own; arrays that overlap get addresses that overlap. */
function addresses() {
  const known = new Map<ArrayBufferLike, bigint>()
  let next = 0x1_0000_0000n
  return (bytes: Uint8Array): bigint => {
    let base = known.get(bytes.buffer)
    if (base === undefined) {
      base = next
      next += 0x100_0000n
      known.set(bytes.buffer, base)
    }
    return base + BigInt(bytes.byteOffset)
  }
}

const op = (call: string, args: SpawnOp['args'], more: Partial<SpawnOp> = {}): SpawnOp => ({
  name: `do ${call}`,
  call,
  args,
  expect: 'ok',
  ...more,
})
const last = op('execve', [Uint8Array.of(0), { vector: [] }, { vector: [] }])
function layout(ops: readonly SpawnOp[], addressOf = addresses()): Birth & Layout {
  const birth = layOutBirth({ namespaces: [] }, addressOf)
  return { ...birth, ...layOut(ops, birth, addressOf) }
}
const words = ({ ops }: Layout, index: number) =>
  Array.from({ length: 10 }, (_, word) => ops.readBigInt64LE(index * 80 + word * 8))

describe('the layout of a plan', () => {
  it('has the number, the arguments and the range of results of each call', () => {
    const list = [
      op('getpid', [-100, 2n ** 64n - 1n, null]),
      op('kill', [], { expect: 'any' }),
      op('unshare', [1], { expect: { errno: 'EPERM' } }),
      last,
    ]
    const made = layout(list)
    expect(words(made, 0)).toEqual([BigInt(NR.getpid), -100n, -1n, 0n, 0n, 0n, 0n, 0n, 2n ** 63n - 1n, 0n])
    expect(words(made, 1).slice(7, 9)).toEqual([-(2n ** 63n), 2n ** 63n - 1n])
    expect(words(made, 2).slice(7, 9)).toEqual([-1n, -1n])
    expect(made.plan.readBigInt64LE(8)).toBe(4n)
    expect(made.cloneArgs.readBigUInt64LE(0)).toBe(0x5100n)
  })

  it('points at bytes, at vectors that end in NULL and at structures with pointers', () => {
    const addressOf = addresses()
    const [text, filter, program] = [Buffer.from('a\0'), Buffer.alloc(16, 1), Buffer.alloc(16)]
    const list = [
      op('seccomp', [1, 0, { struct: program, pointers: [{ offset: 8, to: filter }] }]),
      op('execve', [text, { vector: [text] }, null]),
    ]
    const made = layout(list, addressOf)
    expect(program.readBigUInt64LE(8)).toBe(addressOf(filter))
    expect(words(made, 0)[3]).toBe(addressOf(program))
    const vector = made.keep.find((bytes) => addressOf(bytes) === words(made, 1)[2])
    expect(vector?.byteLength).toBe(16)
    expect(Buffer.from(vector ?? []).readBigUInt64LE(0)).toBe(addressOf(text))
    expect(made.keep).toEqual(expect.arrayContaining([text, filter, program]))
  })

  it('connects results with arguments and words of structures, in the order in which they are made', () => {
    const addressOf = addresses()
    const struct = Buffer.alloc(16)
    const list = [
      op('dup', [1], { store: 'a' }),
      op('dup', [2], { store: 'b' }),
      op('write', [{ slot: 'b' }, struct, 16], { patch: [{ arg: 1, offset: 8, slot: 'a' }] }),
      op('close', [{ slot: 'a' }]),
      last,
    ]
    const made = layout(list, addressOf)
    const stores = made.keep.find((bytes) => addressOf(bytes) === made.plan.readBigUInt64LE(16))
    const encoded = Buffer.from(stores ?? [])
    const pairs = Array.from({ length: encoded.length / 16 }, (_, at) => [
      encoded.readBigInt64LE(at * 16),
      encoded.readBigUInt64LE(at * 16 + 8),
    ])
    const argument = (index: number, position: number) =>
      addressOf(made.ops) + BigInt(index * 80 + 8 + position * 8)
    expect(pairs).toEqual([
      [0n, addressOf(struct) + 8n],
      [0n, argument(3, 0)],
      [1n, argument(2, 0)],
      [-1n, 0n],
    ])
  })

  it('of an entry that is kept is the same in every plan, at every place of it', () => {
    const addressOf = addresses()
    const bytes = Buffer.from('a\0')
    const struct = { struct: Buffer.alloc(16), pointers: [{ offset: 8, to: bytes }] }
    const use = op('write', [{ slot: 'a' }, bytes, struct, -2, 2n ** 63n], { expect: { errno: 'EPERM' } })
    const make = op('dup', [1], { store: 'a' })
    const kept = [make, { ...use, kept: true as const }, last]
    const longer = [op('getpid', []), ...kept]
    const stores = (made: Birth & Layout) => {
      const table = made.keep.find((one) => addressOf(one) === made.plan.readBigUInt64LE(16))
      const words = Buffer.from(table ?? [])
      return [words.readBigInt64LE(0), words.readBigUInt64LE(8) - addressOf(made.ops)]
    }
    for (let round = 0; round < 2; round++) {
      expect(words(layout(kept, addressOf), 1)).toEqual(words(layout([make, use, last], addressOf), 1))
      expect(words(layout(longer, addressOf), 2)).toEqual(words(layout(kept, addressOf), 1))
      expect(stores(layout(kept, addressOf))).toEqual([0n, 80n + 8n])
      expect(stores(layout(longer, addressOf))).toEqual([1n, 160n + 8n])
      // Whoever runs the plan holds on to what it points at.
      expect(layout(kept, addressOf).keep).toEqual(expect.arrayContaining([bytes, struct.struct]))
    }
    expect(() => layout([kept[1] as SpawnOp, last])).toThrow(/before it is stored/)
  })

  it.each([
    [
      'an entry that is kept and patched',
      [
        op('dup', [1], { store: 'a' }),
        op('write', [1, Buffer.alloc(8), 8], { kept: true, patch: [{ arg: 1, offset: 0, slot: 'a' }] }),
        last,
      ],
    ],
    ['nothing to execute', [op('getpid', [])]],
    ['a call that does not exist', [op('getpidd', []), last]],
    ['a slot that nobody stores', [op('close', [{ slot: 'a' }]), last]],
    ['a slot of a later entry', [op('close', [{ slot: 'a' }]), op('dup', [1], { store: 'a' }), last]],
    ['two results of one name', [op('dup', [1], { store: 'a' }), op('dup', [1], { store: 'a' }), last]],
    ['seven arguments', [op('getpid', [0, 0, 0, 0, 0, 0, 0]), last]],
    ['a number that is no integer', [op('close', [0.5]), last]],
    ['an errno that does not exist', [op('close', [1], { expect: { errno: 'ENOPE' } }), last]],
    [
      'an argv element without NUL',
      [op('execve', [Uint8Array.of(0), { vector: [Uint8Array.of(65)] }, null])],
    ],
    [
      'a patch outside of its bytes',
      [
        op('dup', [1], { store: 'a' }),
        op('write', [1, Buffer.alloc(8), 8], { patch: [{ arg: 1, offset: 5, slot: 'a' }] }),
        last,
      ],
    ],
  ])('is refused with %s', (_, ops) => expect(() => layout(ops)).toThrow(/Malformed spawn plan/))

  it('of a child that never got its list says so', () => {
    const birth = layOutBirth({ namespaces: ['NEWPID'] }, addresses())
    expect(readOutcome(birth, null)).toEqual({ returned: false, at: -1, result: 0, pidfd: -1 })
    expect(() => layOut([op('getpidd', []), last], birth, addresses())).toThrow(/Malformed/)
    expect(birth.plan.readBigUInt64LE(0)).toBe(0n)
  })

  it('tells what the child left', () => {
    const made = layout([op('getpid', []), last])
    made.plan.writeBigInt64LE(1n, 24)
    made.plan.writeBigInt64LE(1n, 32)
    made.plan.writeInt32LE(9, 40)
    made.ops.writeBigInt64LE(-2n, 80 + 72)
    expect(readOutcome(made, made.ops)).toEqual({ returned: true, at: 1, result: -2, pidfd: 9 })
  })
})
