import { describe, expect, it } from 'vitest'
import type { Change, Changeset, NodeType } from '../../daemon/contract/changeset.ts'
import type { Finding, Verdict } from '../../daemon/contract/verdict.ts'
import { reviewItems, selectionOfChoice } from './items.ts'

const node = (type: NodeType, mode = 0o644) => ({
  type,
  mode,
  uid: 0,
  gid: 0,
  size: 0,
  mtimeNs: 0n,
  xattrs: [],
})

/** `modify file a`, in canonical order. */
function changeset(...lines: string[]): Changeset {
  const changes = lines.map((line): Change => {
    const [kind = 'add', type = 'file', path = ''] = line.split(' ') as [Change['kind']?, NodeType?, string?]
    const state = node(type)
    const sides = { old: kind === 'add' ? null : state, new: kind === 'delete' ? null : state }
    return { base: 0, path: Buffer.from(path), kind, ...sides, findings: [] }
  })
  const totals = { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 }
  return { version: 1, bases: ['/b'], changes, requests: [], totals, digest: '' }
}

const found = (path: string, severity: Finding['severity']): Finding => ({
  rule: 'r',
  severity,
  message: '',
  path,
})
const verdict = (...hold: Finding[]): Verdict => ({
  ...{ kind: 'hold', digest: '', tier: 'auto', deny: [], hold, warn: [], obligations: [], policies: [] },
  ...{ durationMs: 0, shadow: false },
})
const asked = (from: Changeset, judged: Verdict | null = null): string[] =>
  reviewItems(from, judged).map(({ change }) => Buffer.from(change.path).toString())

describe('the questions of a review', () => {
  it('begin with what was found, the worst first', () => {
    const all = changeset('modify file a', 'modify file b', 'modify file c', 'modify file d')
    expect(asked(all, verdict(found('d', 'low'), found('/b/c', 'critical')))).toEqual(['c', 'd', 'a', 'b'])
  })

  it('leave out what comes along: times of directories, made directories, what is in one that goes', () => {
    const all = changeset(
      ...[
        'metadata dir .',
        'add dir new',
        'add file new/x',
        'add dir empty',
        'delete dir old',
        'delete file old/x',
      ],
    )
    expect(asked(all)).toEqual(['new/x', 'empty', 'old'])
    expect(reviewItems(all, null).at(-1)?.below).toBe(1)
  })
})

describe('the selection of a review', () => {
  const all = changeset('modify file a', 'modify file *')
  const [first, second] = all.changes as [Change, Change]
  it('names exact paths', () =>
    expect(selectionOfChoice(all, { taken: [second], left: [first] })).toEqual({
      only: ['=/b/*'],
      except: [],
    }))
  it('is none when everything is taken', () =>
    expect(selectionOfChoice(all, { taken: [first, second], left: [] })).toBeNull())
})
