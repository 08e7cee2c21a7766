import { describe, expect, it } from 'vitest'
import type { Change, ChangeKind, NodeState } from '../contract/changeset.ts'
import { demandOf, stickyAllows } from './writable.ts'

const USER = { uid: 1000, gid: 1000, groups: [1000, 50], name: 'user' }
const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const node = (change: Partial<NodeState> = {}): NodeState => ({
  ...{ type: 'file', mode: 0o644, uid: 1000, gid: 1000, size: 1, mtimeNs: 0n, sha256: 'a', xattrs: [] },
  ...change,
})
const change = (kind: ChangeKind, old: NodeState | null, state: NodeState | null): Change => ({
  ...{ base: 0, path: Buffer.from('p'), kind, old, new: state, findings: [] },
})
/** The needs in short; `|` stands before the other way. */
function needs(
  what: Change,
  requester: typeof USER = USER,
  inStaging = false,
  groupOfParent: number | null = null,
): string {
  const { all, or } = demandOf(what, requester, inStaging, groupOfParent)
  const shown = (list: typeof all): string => list.map((need) => need.kind).join(' ')
  return or === null ? shown(all) : `${shown(all)} | ${shown(or)}`
}

describe('what the requester must have been able to do', () => {
  it.each([
    ['a new file', change('add', null, node()), 'entries'],
    ['a removed one', change('delete', node({ uid: 0 }), null), 'entries'],
    ['their own content', change('modify', node(), node({ sha256: 'b' })), 'write | entries'],
    [
      "somebody's content",
      change('modify', node({ uid: 0 }), node({ uid: 0, sha256: 'b' })),
      'write write | never entries',
    ],
    ['their own mode', change('metadata', node(), node({ mode: 0o600 })), ''],
    ["somebody's mode", change('metadata', node({ uid: 0 }), node({ uid: 0, mode: 0o600 })), 'never'],
    ["somebody's time", change('metadata', node({ uid: 0 }), node({ uid: 0, mtimeNs: 5n })), 'write'],
    [
      'a symlink in a file’s place',
      change('replace', node({ uid: 0 }), node({ type: 'symlink' })),
      'entries',
    ],
  ] as const)('%s', (_, what, expected) => {
    expect(needs(what)).toBe(expected)
  })

  it('is never giving a file away, or to a group of others', () => {
    expect(needs(change('add', null, node({ uid: 0 })))).toBe('never entries')
    expect(needs(change('add', null, node({ gid: 7 })))).toBe('never entries')
    expect(needs(change('add', null, node({ gid: 50 })))).toBe('entries')
    // A setgid directory gives its group to what is made in it.
    expect(needs(change('add', null, node({ gid: 7 })), USER, false, 7)).toBe('entries')
    expect(needs(change('modify', node({ gid: 7 }), node({ gid: 7, sha256: 'b' })))).toBe('write | entries')
  })

  it('is only the numbers below a directory that is new itself', () => {
    expect(needs(change('add', null, node()), USER, true)).toBe('')
    expect(needs(change('add', null, node({ uid: 0 })), USER, true)).toBe('never')
  })

  it('is not an ACL, a capability or a trusted attribute of a file of others', () => {
    for (const name of ['system.posix_acl_access', 'security.capability', 'trusted.x']) {
      const xattrs = [{ name, value: Buffer.from('1') }]
      expect(needs(change('metadata', node({ uid: 0 }), node({ uid: 0, xattrs })))).toBe('never')
    }
    const xattrs = [{ name: 'user.x', value: Buffer.from('1') }]
    expect(needs(change('metadata', node({ uid: 0 }), node({ uid: 0, xattrs })))).toBe('write')
  })

  it('is asked of root as well: what is read-only is read-only for everybody', () => {
    expect(needs(change('add', null, node({ uid: 4, gid: 4 })), ROOT)).toBe('entries')
    expect(needs(change('metadata', node(), node({ mode: 0o600 })), ROOT)).toBe('write')
    expect(needs(change('add', null, node()), ROOT, true)).toBe('')
  })
})

it('a sticky directory lets its owner and the owner of the entry remove it, and root', () => {
  const sticky = { mode: 0o1777, uid: 5 }
  expect(stickyAllows(USER, sticky, { uid: 1000 })).toBe(true)
  expect(stickyAllows(USER, { ...sticky, uid: 1000 }, { uid: 9 })).toBe(true)
  expect(stickyAllows(USER, sticky, null)).toBe(true)
  expect(stickyAllows(USER, { ...sticky, mode: 0o777 }, { uid: 9 })).toBe(true)
  expect(stickyAllows(ROOT, sticky, { uid: 9 })).toBe(true)
  expect(stickyAllows(USER, sticky, { uid: 9 })).toBe(false)
})
