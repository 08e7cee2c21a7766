import { describe, expect, it } from 'vitest'
import { makeChange, type ShortChange } from '../../test/fakes/changesets.ts'
import type { BaseIdentity, Change } from '../contract/changeset.ts'
import { type CommitPlan, PlanError, planCommit } from './commit-plan.ts'

const identity = (nlink = 1): BaseIdentity => ({
  dev: 1,
  ino: 2,
  size: 0,
  mtimeNs: 0n,
  ctimeNs: 0n,
  nlink,
})
/** A change of the base's file or directory, with what the base's inode is. */
const known = (short: ShortChange, nlink = 1): Change => ({ ...makeChange(short), identity: identity(nlink) })
const plan = (changes: readonly Change[], allowSetuid = false, inherits = false): CommitPlan =>
  planCommit(changes, { allowSetuid, inheritsGroup: () => inherits })
const lines = ({ operations }: CommitPlan): string[] =>
  operations.map(({ kind, path, tree }) => {
    const below = tree.map((node) => node.below.toString()).join(',')
    return `${kind} ${path}${below === '' ? '' : ` [${below}]`}`
  })

describe('a commit plan', () => {
  it('is one rename for a new tree, and one for a tree that goes', () => {
    const added = ['new', 'new/deep'].map((path) => makeChange({ path, dir: true }))
    const gone = [
      known({ path: 'old', dir: true, kind: 'delete' }, 2),
      known({ path: 'old/a', kind: 'delete' }),
    ]
    const planned = plan([...added, makeChange({ path: 'new/deep/file' }), ...gone])
    expect(lines(planned)).toEqual(['place new [,deep,deep/file]', 'remove old', 'adjust '])
    // What leaves inside of it is compared with the base all the same.
    expect(planned.folded.map(({ path }) => Buffer.from(path).toString())).toEqual(['old/a'])
  })

  it('replaces content by a swap, and changes metadata where it is', () => {
    expect(lines(plan([known({ path: 'f', kind: 'modify', content: 'new', old: 'x' })]))).toEqual([
      'swap f',
      'adjust ',
    ])
    expect(lines(plan([known({ path: 'f', kind: 'metadata', mode: 0o600 })]))).toEqual(['adjust f'])
    expect(lines(plan([known({ path: 'd', dir: true, kind: 'metadata', mode: 0o700 }, 2)]))).toEqual([
      'adjust d',
    ])
  })

  it('never writes through a name to an inode that has others: metadata of a linked file is a swap, and warned of', () => {
    const planned = plan([known({ path: 'f', kind: 'metadata', mode: 0o600 }, 3)])
    expect(lines(planned)).toEqual(['swap f', 'adjust '])
    expect(planned.warnings).toEqual([{ path: 'f', message: '2 other hard links keep their old content' }])
    const [warning] = plan([known({ path: 'f', kind: 'modify', content: 'n' }, 2)]).warnings
    expect(warning?.message).toBe('1 other hard link keeps its old content')
  })

  it('gives directories their times last, the deepest first', () => {
    const planned = plan([
      known({ path: 'a/b/f', kind: 'modify', content: 'n' }),
      makeChange({ path: 'a/g' }),
    ])
    expect(lines(planned)).toEqual(['swap a/b/f', 'place a/g', 'adjust a/b', 'adjust a'])
  })

  it('takes what a directory held along when it becomes a file, and builds what a file becomes', () => {
    const becomesFile: Change = { ...known({ path: 'd', kind: 'replace' }, 2) }
    if (becomesFile.old !== null) becomesFile.old = { ...becomesFile.old, type: 'dir' }
    const planned = plan([becomesFile, known({ path: 'd/inside', kind: 'delete' })])
    expect(lines(planned)).toEqual(['swap d', 'adjust '])
    expect(planned.folded).toHaveLength(1)
    const becomesDir = known({ path: 'f', kind: 'replace', dir: true })
    if (becomesDir.old !== null) becomesDir.old = { ...becomesDir.old, type: 'file' }
    expect(lines(plan([becomesDir, makeChange({ path: 'f/in' })]))).toEqual(['swap f [,in]', 'adjust '])
  })

  it('refuses whatever has a finding, by its path', () => {
    const findings = [{ rule: 'special-file', message: 'it is a fifo' }]
    const error = (() => {
      try {
        plan([makeChange({ path: 'fifo', findings })])
      } catch (caught) {
        return caught
      }
      return undefined
    })()
    expect(error).toBeInstanceOf(PlanError)
    expect(error).toMatchObject({ message: 'it is a fifo', change: { path: Buffer.from('fifo') } })
  })

  it('strips setuid with a warning, unless the profile allows it', () => {
    const setuid = makeChange({ path: 'su', mode: 0o6755 })
    const stripped = plan([setuid])
    expect(stripped.stripped.get(setuid)?.mode).toBe(0o755)
    expect(stripped.warnings.map(({ message }) => message)).toEqual([
      'the setuid bit was removed',
      'the setgid bit was removed',
    ])
    expect(plan([setuid], true)).toMatchObject({
      warnings: [],
      operations: [{ tree: [{ state: { mode: 0o6755 } }] }, {}],
    })
  })

  it('lets a new directory keep the setgid bit that it inherits, also below one that is new itself', () => {
    const shared = [
      makeChange({ path: 's', dir: true, mode: 0o2755 }),
      makeChange({ path: 's/t', dir: true, mode: 0o2755 }),
    ]
    expect(plan(shared, false, true).warnings).toEqual([])
    expect(plan(shared, false, false).warnings).toHaveLength(2)
  })
})
