import { describe, expect, it } from 'vitest'
import type { NodeState } from '../contract/changeset.ts'
import { isLanded, strip } from './landed-meta.ts'

const CAPABILITY = { name: 'security.capability', value: Buffer.from('01') }
const file = (change: Partial<NodeState> = {}): NodeState => ({
  ...{ type: 'file', mode: 0o644, uid: 1, gid: 1, size: 1, mtimeNs: 0n, sha256: 'a', xattrs: [] },
  ...change,
})
const dir = (mode: number): NodeState => {
  const { sha256: _, ...state } = file({ type: 'dir', mode })
  return state
}

describe('what lands of a file', () => {
  it('is what it was, when it has no special rights', () => {
    const state = file({ mode: 0o1777, xattrs: [{ name: 'user.a', value: Buffer.from('1') }] })
    expect(strip(null, state, false)).toEqual({ state, lost: [] })
  })

  it.each([
    [0o4755, ['the setuid bit was removed']],
    [0o2755, ['the setgid bit was removed']],
    [0o6755, ['the setuid bit was removed', 'the setgid bit was removed']],
  ])('is not the set-id bits of a new one (%o)', (mode, lost) => {
    expect(strip(null, file({ mode }), true)).toMatchObject({ state: { mode: 0o755 }, lost })
  })

  it('keeps set-id bits that it had, while owner, group and content are the same', () => {
    const old = file({ mode: 0o4755 })
    expect(strip(old, file({ mode: 0o4700 }), false)).toMatchObject({ state: { mode: 0o4700 }, lost: [] })
    for (const change of [{ sha256: 'b' }, { uid: 0 }, { gid: 0 }])
      expect(strip(old, file({ mode: 0o4755, ...change }), false).lost).toEqual([
        'the setuid bit was removed',
      ])
    expect(strip(file({ mode: 0o4755 }), file({ mode: 0o6755 }), false).lost).toEqual([
      'the setgid bit was removed',
    ])
  })

  it('keeps capabilities only where the same ones stood on the same content', () => {
    const with_ = file({ xattrs: [CAPABILITY] })
    expect(strip(null, with_, false)).toMatchObject({
      state: { xattrs: [] },
      lost: ['file capabilities were removed'],
    })
    expect(strip(with_, file({ xattrs: [CAPABILITY], mode: 0o600 }), false).lost).toEqual([])
    expect(strip(with_, file({ xattrs: [CAPABILITY], sha256: 'b' }), false).lost).toHaveLength(1)
    const more = file({ xattrs: [{ ...CAPABILITY, value: Buffer.from('ff') }] })
    expect(strip(with_, more, false).lost).toHaveLength(1)
  })
})

describe('what lands of a directory', () => {
  it('is a setgid bit that it inherits or had, never a setuid bit', () => {
    expect(strip(null, dir(0o2755), true).lost).toEqual([])
    expect(strip(null, dir(0o2755), false).lost).toEqual(['the setgid bit was removed'])
    expect(strip(dir(0o2755), dir(0o2700), false).lost).toEqual([])
    expect(strip(null, dir(0o4755), true).lost).toEqual(['the setuid bit was removed'])
  })
})

it('attributes of people, root and ACLs land; marks of overlay and labels do not', () => {
  const names = `user.a trusted.b system.posix_acl_access system.posix_acl_default security.capability
    trusted.overlay.opaque user.overlay.opaque security.selinux security.ima system.other`.split(/\s+/)
  expect(names.filter(isLanded)).toEqual(names.slice(0, 5))
})
