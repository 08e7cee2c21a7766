import { describe, expect, it } from 'vitest'
import { BRANCH_STATES } from '../contract/states.ts'
import type { ReadJournal } from './journal/reader.ts'
import { type CommitFate, type CommitTraces, planRecovery, stateAfterCommit } from './recovery-plan.ts'

const begin = { kind: 'begin', branch: '23456789bc' } as ReadJournal['begin']
const journal = (...outcome: ReadJournal['outcome']): ReadJournal => ({
  ...{ kind: 'read', begin, operations: [], outcome, end: 0, check: '' },
})
const AT = '2026-01-01T00:00:00.000Z'
const traces = (found: CommitTraces['journal']): CommitTraces[] => [
  { commit: 'c1', journal: found, leftovers: true },
]
const step = (found: CommitTraces['journal'], retry: string[] = []) =>
  planRecovery(traces(found), new Set(retry))[0]

describe('recovery', () => {
  it('follows the journal, and only the journal', () => {
    expect(step(null)).toEqual({ kind: 'sweep', commit: 'c1' })
    expect(step(journal())).toMatchObject({ kind: 'finish', branch: '23456789bc' })
    expect(step(journal({ kind: 'done', at: AT, warnings: [] }))).toMatchObject({ kind: 'tidy' })
    expect(step(journal({ kind: 'undone', at: AT, reason: 'r' }))).toMatchObject({ kind: 'clear' })
  })

  it('does nothing about what is stuck until a person says so, and shows why', () => {
    const stuck = journal({ kind: 'stuck', at: AT, reason: 'EIO' })
    expect(step(stuck)).toMatchObject({
      kind: 'show',
      reason: 'Commit c1 can neither be finished nor undone: EIO',
    })
    expect(step(stuck, ['c2'])).toMatchObject({ kind: 'show' })
    expect(step(stuck, ['c1'])).toMatchObject({ kind: 'finish' })
  })

  it('shows damage, even to a person who wants it tried again', () => {
    const damaged = { kind: 'damaged', reason: 'at byte 5', begin } as const
    expect(step(damaged, ['c1'])).toMatchObject({
      kind: 'show',
      branch: '23456789bc',
      reason: expect.stringMatching(/damaged \(at byte 5\): put journal\/c1\.log .* back/),
    })
    expect(step({ kind: 'newer', reason: 'version 2', begin: null })).toMatchObject({
      kind: 'show',
      branch: null,
      reason: expect.stringContaining('newer puzzled (version 2): use that one'),
    })
  })
})

describe('a branch whose commit was interrupted', () => {
  const fate = (what: CommitFate['fate'], part = false): CommitFate => ({
    ...{
      commit: 'c1',
      branch: 'b',
      fate: what,
      digest: 'd',
      at: AT,
      part,
      reverts: null,
      reason: '',
      fresh: true,
    },
  })

  it.each(['staging', 'committing', 'commit-stuck'] as const)(
    'goes from %s where its journal ended',
    (state) => {
      expect(stateAfterCommit(state, fate('committed'))).toBe('committed')
      expect(stateAfterCommit(state, fate('committed', true))).toBe('stopped')
      expect(stateAfterCommit(state, fate('undone'))).toBe('stopped')
      expect(stateAfterCommit(state, fate('swept'))).toBe('stopped')
      expect(stateAfterCommit(state, fate('stuck'))).toBe('commit-stuck')
      expect(stateAfterCommit(state, null)).toBe('stopped')
    },
  )

  it('is no other branch', () => {
    const others = BRANCH_STATES.filter((state) => !['staging', 'committing', 'commit-stuck'].includes(state))
    for (const state of others) expect(stateAfterCommit(state, fate('committed'))).toBe(state)
  })
})
