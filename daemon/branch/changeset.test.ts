import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toVariant } from '../contract/bus-values.ts'
import { type Change, isEcho, type NodeState, type NodeType } from '../contract/changeset.ts'
import { asFileTime } from '../lib/file-time.ts'
import {
  compareChanges,
  proveChange,
  sealChangeset,
  totalsOf,
  verifyChange,
  withRequests,
} from './changeset.ts'
import {
  canonicalChange,
  Reader,
  readChange,
  Writer,
  writeCanonical,
  writeIdentity,
} from './changeset-codec.ts'
import { packChanges } from './journal/changes.ts'
import { canonicalOf, packedChanges, plainChange, writeRecord } from './packed-change.ts'
import { SortedChanges } from './sorted-changes.ts'

const state = fc
  .record({
    type: fc.constantFrom<NodeType>('file', 'dir', 'symlink'),
    mode: fc.nat(0o7777),
    uid: fc.nat(0xffffffff),
    gid: fc.nat(0xffffffff),
    size: fc.maxSafeNat(),
    mtimeNs: fc.bigInt(-(2n ** 63n), 2n ** 64n).map(asFileTime),
    hash: fc.uint8Array({ minLength: 32, maxLength: 32 }),
    link: fc.uint8Array({ minLength: 1, maxLength: 20 }),
    xattrs: fc.array(
      fc.record({ name: fc.string({ maxLength: 9 }), value: fc.uint8Array({ maxLength: 9 }) }),
      {
        maxLength: 2,
      },
    ),
  })
  .map(({ hash, link, xattrs, ...rest }): NodeState => {
    const values = xattrs.map((xattr) => ({ ...xattr, value: Buffer.from(xattr.value) }))
    if (rest.type === 'file') return { ...rest, xattrs: values, sha256: Buffer.from(hash).toString('hex') }
    return rest.type === 'symlink'
      ? { ...rest, xattrs: values, link: Buffer.from(link) }
      : { ...rest, xattrs: values }
  })

const number = fc.maxSafeNat()
const time = fc.bigInt(-(2n ** 63n), 2n ** 64n).map(asFileTime)
const change = fc
  .record({
    base: fc.nat(3),
    path: fc.uint8Array({ maxLength: 30 }),
    kind: fc.constantFrom<Change['kind']>('add', 'modify', 'delete', 'metadata', 'replace'),
    old: fc.option(state),
    fresh: fc.option(state),
    hardlink: fc.option(fc.integer({ min: 1, max: 99 })),
    identity: fc.option(
      fc.record({ dev: number, ino: number, size: number, mtimeNs: time, ctimeNs: time, nlink: fc.nat() }),
    ),
    findings: fc.array(fc.record({ rule: fc.string(), message: fc.string() }), { maxLength: 2 }),
  })
  .map(
    ({ fresh, hardlink, identity, path, ...rest }): Change => ({
      ...rest,
      path: Buffer.from(path),
      new: fresh,
      ...(hardlink === null ? {} : { hardlink }),
      // Directories that were there get their time back from the identity: a change without one has no time to lose.
      ...(identity === null
        ? rest.old?.type === 'dir'
          ? { old: { ...rest.old, mtimeNs: 0n } }
          : {}
        : { identity }),
    }),
  )
const changes = fc.array(change, { maxLength: 12 }).map((list) => list.sort(compareChanges))
const seal = (list: readonly Change[], bases = ['/a']): ReturnType<typeof sealChangeset> =>
  sealChangeset({ bases, changes: list, requests: [] })

describe('the encoding of a change', () => {
  it('brings every change back', () => {
    fc.assert(
      fc.property(change, (original) => {
        const writer = new Writer()
        writeCanonical(writer, original)
        writeIdentity(writer, original.identity, original.old)
        const reader = new Reader(writer.take())
        expect(readChange(reader)).toEqual(original)
        expect(reader.done).toBe(true)
      }),
    )
  })

  it('refuses bytes that end in the middle', () => {
    fc.assert(
      fc.property(change, fc.nat(), (original, cut) => {
        const bytes = canonicalChange(original)
        expect(() => readChange(new Reader(bytes.subarray(0, cut % bytes.length)))).toThrow(RangeError)
      }),
    )
  })
})

describe('a digest', () => {
  it('is the same for the same changes and another for others', () => {
    fc.assert(
      fc.property(change, change, (a, b) => {
        const same = canonicalChange(a).equals(canonicalChange(b))
        expect(seal([a]).digest === seal([b]).digest).toBe(same)
      }),
    )
  })

  it('covers the bases and the requests, not the identity of the base', () => {
    const [one] = fc.sample(change, { numRuns: 1, seed: 1 })
    if (one === undefined) throw new Error('no sample')
    const { identity: _, ...bare } = one
    const request = { id: 'r', method: 'POST', host: 'h', path: '/', bytes: 1, class: 'queue', sha256: 'ab' }
    const sealed = seal([bare])
    expect(seal([bare], ['/b']).digest).not.toBe(sealed.digest)
    expect(withRequests(sealed, [request]).digest).not.toBe(sealed.digest)
    const identity = { dev: 1, ino: 2, size: 3, mtimeNs: 4n, ctimeNs: 5n, nlink: 6 }
    expect(seal([{ ...bare, identity }]).digest).toBe(sealed.digest)
  })

  it('proves each of its changes, and no other', () => {
    fc.assert(
      fc.property(changes, change, (list, other) => {
        const sealed = seal(list)
        for (const entry of list) {
          const proof = proveChange(sealed, entry)
          expect(verifyChange(sealed.digest, entry, proof)).toBe(true)
          const isOther = !canonicalChange(other).equals(canonicalChange(entry))
          if (isOther) expect(verifyChange(sealed.digest, other, proof)).toBe(false)
        }
      }),
    )
  })
})

describe('a packed change', () => {
  const packed = (list: readonly Change[]): Buffer => {
    const writer = new Writer()
    for (const each of list) writeRecord(writer, each)
    return writer.take()
  }

  it('is the change that was packed, in each of its fields', () => {
    fc.assert(
      fc.property(changes, (list) => {
        const found = [...packedChanges(packed(list))]
        expect(found.map(plainChange)).toEqual(list)
        expect(found.map((each) => plainChange(each).kind)).toEqual(list.map(({ kind }) => kind))
        expect(found.map(canonicalOf)).toEqual(list.map(canonicalChange))
        expect(packed(found)).toEqual(packed(list))
        expect(seal(found).digest).toBe(seal(list).digest)
      }),
    )
  })

  it('keeps its own fields while others are looked at', () => {
    const [a, b] = [...packedChanges(packed(fc.sample(change, { numRuns: 2, seed: 3 })))]
    if (a === undefined || b === undefined) throw new Error('no sample')
    const [before, other] = [plainChange(a), plainChange(b)]
    expect(before).not.toEqual(other)
    expect([plainChange(a), plainChange(b), plainChange(a)]).toEqual([before, other, before])
  })

  it('is the same on the bus', () => {
    const list = fc.sample(change, { numRuns: 50, seed: 5 })
    const found = [...packedChanges(packed(list))]
    expect(found.map(toVariant)).toEqual(found.map(plainChange).map(toVariant))
  })

  it('is packed again whatever stands beside it, and whole blocks are not copied', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(changes, fc.boolean(), fc.boolean())), (lists) => {
        const blocks = lists.map(([list]) => new Uint8Array(packed(list)))
        const all = lists.flatMap(([list, pack, cut], at) => {
          const records = pack ? [...packedChanges(blocks[at] ?? new Uint8Array())] : list
          return cut ? records.slice(1) : records
        })
        const again = [...packChanges(all)]
        expect(again.flatMap((bytes) => [...packedChanges(bytes)]).map(plainChange)).toEqual(
          all.map(plainChange),
        )
        const shared = new Set(again.map(({ buffer }) => buffer))
        for (const [at, [list, pack, cut]] of lists.entries())
          if (pack && !cut && list.length > 0)
            expect(shared.has(blocks[at]?.buffer as ArrayBuffer)).toBe(true)
      }),
    )
  })

  it('that ends in the middle is refused', () => {
    fc.assert(
      fc.property(change, fc.nat(), (original, cut) => {
        const bytes = packed([original])
        const part = bytes.subarray(0, 1 + (cut % (bytes.length - 1)))
        if (part.length === bytes.length) return
        expect(() => [...packedChanges(part)]).toThrow(RangeError)
      }),
    )
  })

  it('is found by its place, and nothing beside it is', () => {
    const unique = fc.uniqueArray(change, {
      maxLength: 40,
      selector: ({ base, path }) => `${base}:${Buffer.from(path).toString('latin1')}`,
    })
    fc.assert(
      fc.property(unique, fc.boolean(), change, (list, pack, other) => {
        const sorted = list.sort(compareChanges)
        const all = pack ? [...packedChanges(packed(sorted))] : sorted
        const index = new SortedChanges(all)
        for (const each of all) expect(index.find(each.base, each.path)).toBe(each)
        const known = all.some((each) => compareChanges(each, other) === 0)
        expect(index.find(other.base, other.path) !== undefined).toBe(known)
        if (all.length > 1) expect(() => new SortedChanges(all.toReversed())).toThrow('order')
      }),
    )
  })
})

describe('totals', () => {
  it('leave out a directory that only got a new time', () => {
    const dir: NodeState = { type: 'dir', mode: 0o755, uid: 0, gid: 0, size: 0, mtimeNs: 1n, xattrs: [] }
    const touched: Change = {
      base: 0,
      path: Buffer.from('d'),
      kind: 'metadata',
      old: dir,
      new: { ...dir, mtimeNs: 2n },
      findings: [],
    }
    expect(isEcho(touched)).toBe(true)
    expect(isEcho({ ...touched, new: { ...dir, mode: 0o700 } })).toBe(false)
    expect(totalsOf([touched]).files).toBe(0)
  })
})

describe('the writer', () => {
  it('grows at every field, wherever the end of its buffer falls', () => {
    // Lengths around the first sizes of the buffer: an agent chooses them by the length of a name.
    for (let filled = 4080; filled <= 4100; filled++) {
      const writer = new Writer()
      writer.bytes(Buffer.alloc(filled, 1))
      writer.u8(7)
      expect([filled, writer.length, writer.view().at(-1)]).toEqual([filled, filled + 5, 7])
    }
  })
})
