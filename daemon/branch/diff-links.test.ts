import { describe, expect, it } from 'vitest'
import type { Change, NodeState } from '../contract/changeset.ts'
import { LinkedNames } from './diff-links.ts'

const state: NodeState = { type: 'file', mode: 0o644, uid: 0, gid: 0, size: 0, mtimeNs: 0n, xattrs: [] }
let asked = 0
/** Counts how often anybody looks at what the name was in the base. */
const named = (path: string, ino: number): Change => ({
  ...{ base: 0, path: Buffer.from(path), kind: 'metadata', old: state, new: state, findings: [] },
  get identity() {
    asked++
    return { dev: 1, ino, size: 0, mtimeNs: 0n, ctimeNs: 0n, nlink: 2 }
  },
})

describe('the names of a file', () => {
  const taken = (names: LinkedNames): [string, number | undefined][] =>
    [...names.take()].map(({ path, hardlink }) => [String(path), hardlink])

  it('are no change where all of them were one file before, however many there are', () => {
    const names = new LinkedNames()
    const count = 2000
    for (let at = 0; at < count; at++)
      names.add({ change: named(`n${at}`, 7), inode: '1:1', unchanged: true })
    asked = 0
    expect(taken(names)).toEqual([])
    expect(asked).toBeLessThan(10 * count)
  })

  it('are all changes where one of them was another file, numbered by the first of each group', () => {
    const names = new LinkedNames()
    for (const [path, inode, ino] of [
      ['d', 'y', 4],
      ['c', 'x', 3],
      ['b', 'y', 4],
      ['a', 'x', 5],
      ['e', 'y', 6],
      ['f', 'z', 8],
    ] as const)
      names.add({ change: named(path, ino), inode, unchanged: true })
    expect(taken(names)).toEqual([
      ['a', 1],
      ['b', 2],
      ['c', 1],
      ['d', 2],
      ['e', 2],
    ])
    names.add({ change: named('g', 1), inode: 'x', unchanged: false })
    names.add({ change: named('h', 1), inode: 'x', unchanged: true })
    expect(taken(names)).toEqual([
      ['g', 3],
      ['h', 3],
    ])
  })
})
