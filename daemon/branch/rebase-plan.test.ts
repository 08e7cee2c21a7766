import { describe, expect, it } from 'vitest'
import type { Change, NodeState } from '../contract/changeset.ts'
import { sealChangeset } from './changeset.ts'
import { planRebase } from './rebase-plan.ts'

const node = (type: NodeState['type']): NodeState => ({
  type,
  mode: 0o644,
  uid: 0,
  gid: 0,
  size: 0,
  mtimeNs: 0n,
  ...(type === 'file' ? { sha256: '0'.repeat(64) } : {}),
  xattrs: [],
})
const change = (path: string, old: NodeState['type'] | null, now: NodeState['type'] | null): Change => ({
  base: 0,
  path: Buffer.from(path),
  kind: old === null ? 'add' : now === null ? 'delete' : old === now ? 'modify' : 'replace',
  old: old === null ? null : node(old),
  new: now === null ? null : node(now),
  findings: [],
})
const NONE = { ours: [], theirs: [], drop: [] }
const seal = (...changes: Change[]) => sealChangeset({ bases: ['/base'], changes, requests: [] })
const paths = (changes: readonly Change[]): string[] =>
  changes.map(({ path }) => Buffer.from(path).toString())

describe('planRebase', () => {
  const two = seal(change('a', 'file', 'file'), change('b', 'file', 'file'))
  const collided = [{ index: 1, message: 'changed' }]

  it('decides only what collides', () => {
    expect(planRebase(two, collided, NONE).open).toEqual([{ path: 'b', message: 'changed' }])
    expect(paths(planRebase(two, collided, { ...NONE, ours: ['*'] }).changes)).toEqual(['a', 'b'])
    expect(paths(planRebase(two, collided, { ...NONE, theirs: ['*'] }).changes)).toEqual(['a'])
    expect(paths(planRebase(two, collided, { ...NONE, drop: ['*'] }).changes)).toEqual([])
  })

  it('leaves open what is named twice, and drops whatever else is said', () => {
    expect(planRebase(two, collided, { ...NONE, ours: ['b'], theirs: ['*'] }).open).toHaveLength(1)
    expect(planRebase(two, collided, { ours: ['b'], theirs: ['b'], drop: ['b'] }).open).toEqual([])
  })

  it('makes nothing below a directory that is not made', () => {
    const made = seal(change('d', null, 'dir'), change('d/e', null, 'dir'), change('d/e/f', null, 'file'))
    const left = [{ index: 0, message: 'it exists in the base now' }]
    expect(planRebase(made, left, { ...NONE, theirs: ['d'] }).changes).toEqual([])
  })

  it.each([null, 'file'] as const)('keeps every directory above what stays (it becomes %s)', (now) => {
    const gone = seal(
      change('d', 'dir', now),
      change('d/e', 'dir', null),
      change('d/e/kept', 'file', null),
      change('d/gone', 'file', null),
    )
    expect(paths(planRebase(gone, [], { ...NONE, drop: ['kept'] }).changes)).toEqual(['d/gone'])
  })

  it('never does again what no commit could land', () => {
    const device = { ...change('dev', null, 'file'), findings: [{ rule: 'device', message: 'a device' }] }
    expect(planRebase(seal(device), [], { ...NONE, ours: ['*'] }).open).toHaveLength(1)
    expect(planRebase(seal(device), [], { ...NONE, drop: ['dev'] }).open).toEqual([])
  })
})
