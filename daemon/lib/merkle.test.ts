import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  consistencyProof,
  GrowingTree,
  inclusionProof,
  leafHash,
  leafHex,
  provesConsistency,
  provesInclusion,
  rootOf,
} from './merkle.ts'

const leaves = (count: number): Buffer[] =>
  Array.from({ length: count }, (_, at) => leafHash(Buffer.from(`${at}`)))

/** RFC 6962, 2.1, written down as the text has it. */
function definition(data: readonly Buffer[]): Buffer {
  const sha = (...parts: Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()
  if (data.length === 0) return sha()
  const [only] = data
  if (data.length === 1 && only !== undefined) return sha(Buffer.from([0]), only)
  let half = 1
  while (half * 2 < data.length) half *= 2
  return sha(Buffer.from([1]), definition(data.slice(0, half)), definition(data.slice(half)))
}

describe('the tree of RFC 6962', () => {
  it('has the roots of the definition', () => {
    for (let size = 0; size <= 33; size++) {
      const data = Array.from({ length: size }, (_, at) => Buffer.from(`${at}`))
      expect(rootOf(data.map((bytes) => leafHash(bytes)))).toEqual(definition(data))
    }
    expect(rootOf([]).toString('hex')).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
  })

  it('continues from its edge', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(50), (before, more) => {
        const all = leaves(before + more)
        const first = new GrowingTree()
        for (const leaf of all.slice(0, before)) first.append(leaf)
        const second = new GrowingTree(first.size, first.edge())
        for (const leaf of all.slice(before)) second.append(leaf)
        expect(second.root()).toEqual(rootOf(all))
      }),
    )
    const [full, short] = [Buffer.alloc(32), Buffer.alloc(31)]
    const wrong: [number, Buffer[]][] = [
      [3, [full]],
      [1, [short]],
      [1, [Buffer.alloc(33)]],
      [0.5, []],
      [-1, []],
      [2 ** 60, [full]],
    ]
    for (const [size, edge] of wrong) expect(() => new GrowingTree(size, edge)).toThrow(RangeError)
    const tree = new GrowingTree()
    expect(() => tree.append(short)).toThrow(RangeError)
    for (const text of ['', 'ab', 'x'.repeat(64)]) expect(() => tree.appendHex(text)).toThrow(RangeError)
    expect(tree.size).toBe(0)
  })

  it('is the same for hashes as text, and for leaves of every length', () => {
    const [bytes, text] = [new GrowingTree(), new GrowingTree()]
    for (const length of [0, 1, 55, 64, 4_094, 4_095, 4_096, 100_000]) {
      const data = Buffer.alloc(length, length)
      expect(leafHash(data)).toEqual(definition([data]))
      expect(leafHex(data)).toBe(leafHash(data).toString('hex'))
      bytes.append(leafHash(data))
      text.appendHex(leafHex(data))
      expect(text.root()).toEqual(bytes.root())
      expect(text.edge()).toEqual(bytes.edge())
    }
  })

  it('proves each leaf, and nothing else', () => {
    for (let size = 1; size <= 20; size++) {
      const all = leaves(size)
      const root = rootOf(all)
      all.forEach((leaf, index) => {
        const proof = inclusionProof(all, index)
        expect(provesInclusion(leaf, index, size, proof, root)).toBe(true)
        expect(provesInclusion(leafHash(Buffer.from('x')), index, size, proof, root)).toBe(false)
        expect(provesInclusion(leaf, index, size, [...proof, root], root)).toBe(false)
        if (size > 1) expect(provesInclusion(leaf, (index + 1) % size, size, proof, root)).toBe(false)
      })
    }
  })

  it('proves that a tree grew, and not that it was rewritten', () => {
    for (let size = 1; size <= 20; size++)
      for (let before = 1; before <= size; before++) {
        const all = leaves(size)
        const old = { size: before, root: rootOf(all.slice(0, before)) }
        const now = { size, root: rootOf(all) }
        const proof = consistencyProof(all, before)
        expect(provesConsistency(old, now, proof)).toBe(true)
        expect(provesConsistency({ ...old, root: leafHash(Buffer.from('y')) }, now, proof)).toBe(false)
        expect(provesConsistency(old, { ...now, root: leafHash(Buffer.from('y')) }, proof)).toBe(false)
      }
  })
})
