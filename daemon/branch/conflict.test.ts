import { describe, expect, it } from 'vitest'
import { makeChange } from '../../test/fakes/changesets.ts'
import type { Change } from '../contract/changeset.ts'
import type { DiskStat } from '../lib/disk.ts'
import { conflictError, conflictOf, MAX_CONFLICTS } from './conflict.ts'

const FORK = 1000n
const stat = (change: Partial<DiskStat> = {}): DiskStat => ({
  ...{ kind: 'file', dev: 1, ino: 2, mode: 0o644, uid: 1000, gid: 1000, size: 3 },
  ...{ mtimeNs: 10n, ctimeNs: 10n, nlink: 1, allocated: 0, sealed: null },
  ...change,
})
const seen = { dev: 1, ino: 2, size: 3, mtimeNs: 10n, ctimeNs: 10n, nlink: 1 }
const edit: Change = {
  ...makeChange({ path: 'f', kind: 'modify', content: 'new', old: 'old' }),
  identity: seen,
}
const dir: Change = { ...makeChange({ path: 'd', kind: 'metadata', dir: true }), identity: seen }

const directory = (change: Partial<DiskStat> = {}): DiskStat =>
  stat({ kind: 'dir', ...modeOf(dir), ...change })

describe('a conflict', () => {
  it('is none where the base is what was reviewed', () => {
    expect(conflictOf(edit, { stat: stat() }, FORK)).toBeNull()
    expect(conflictOf(makeChange({ path: 'n' }), { stat: null }, FORK)).toBeNull()
  })

  it.each([
    ['gone', edit, null, /gone from the base/],
    ['made by somebody', makeChange({ path: 'n' }), stat(), /exists in the base now/],
    ['of another type', edit, stat({ kind: 'symlink' }), /it is a symlink in the base now, it was a file/],
    ['changed after the fork, whatever its other times', edit, stat({ ctimeNs: 1001n }), /after the fork/],
    ['another inode', edit, stat({ ino: 3 }), /another file has its place/],
    ['on another device', edit, stat({ dev: 9 }), /another file has its place/],
    ['of another size', edit, stat({ size: 4 }), /content was changed/],
    ['of another time', edit, stat({ mtimeNs: 11n }), /content was changed/],
    ['touched since the review', edit, stat({ ctimeNs: 11n }), /since it was reviewed/],
  ] as const)('is a path that is %s', (_, change, found, message) => {
    expect(conflictOf(change, { stat: found }, FORK)).toMatch(message)
  })

  it('is not what others did in a directory, only another directory', () => {
    expect(
      conflictOf(dir, { stat: directory({ ctimeNs: 5000n, mtimeNs: 5000n, nlink: 7 }) }, FORK),
    ).toBeNull()
    expect(conflictOf(dir, { stat: directory({ ino: 3 }) }, FORK)).toMatch(/another file has its place/)
  })

  it('is a mode of a directory that somebody else may have set', () => {
    expect(conflictOf(dir, { stat: directory({ mode: 0o700 }) }, FORK)).toMatch(/mode or owner was changed/)
    const opened: Change = { ...dir, new: dir.new === null ? null : { ...dir.new, mode: 0o777 } }
    expect(conflictOf(opened, { stat: directory() }, FORK)).toBeNull()
    expect(conflictOf(opened, { stat: directory({ ctimeNs: 5000n }) }, FORK)).toMatch(
      /after the fork, and its mode/,
    )
  })

  it('of a revert is decided by what is there: content, target, owner, mode, attributes', () => {
    const { identity: _, ...reverse } = edit
    const there = { stat: stat({ size: reverse.old?.size ?? 0 }), xattrs: [], ...sha(reverse) }
    expect(conflictOf(reverse, there, null)).toBeNull()
    expect(conflictOf(reverse, { ...there, sha256: 'f' }, null)).toMatch(/content/)
    expect(conflictOf(reverse, { ...there, stat: { ...there.stat, uid: 1 } }, null)).toMatch(/owner/)
    expect(conflictOf(reverse, { ...there, stat: { ...there.stat, mode: 0o600 } }, null)).toMatch(/mode/)
    const xattrs = [{ name: 'user.a', value: Buffer.from('1') }]
    expect(conflictOf(reverse, { ...there, xattrs }, null)).toMatch(/attributes/)
    const link = makeChange({ path: 'l', kind: 'modify', link: 'a' })
    expect(conflictOf(link, { stat: stat({ kind: 'symlink' }), link: Buffer.from('b') }, null)).toMatch(
      /points elsewhere/,
    )
  })
})

function modeOf({ old }: Change): Partial<DiskStat> {
  return old === null ? {} : { mode: old.mode, uid: old.uid, gid: old.gid }
}

const sha = ({ old }: Change): { sha256?: string } =>
  old?.sha256 === undefined ? {} : { sha256: old.sha256 }

it('all conflicts are counted, and as many told as a person reads', () => {
  const many = Array.from({ length: MAX_CONFLICTS + 50 }, (_, n) => ({
    path: Buffer.from(`f${n}`),
    message: 'm',
  }))
  const { message, data } = conflictError(many)
  expect(message).toBe(`The base changed: "f0": m (and ${MAX_CONFLICTS + 49} more)`)
  expect(data).toMatchObject({ total: MAX_CONFLICTS + 50 })
  expect(data?.conflicts).toHaveLength(MAX_CONFLICTS)
})
