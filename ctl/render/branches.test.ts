import { describe, expect, it } from 'vitest'
import type { AgentExit, BranchRecord } from '../../daemon/contract/branch.ts'
import type { Verdict } from '../../daemon/contract/verdict.ts'
import { branchRecord } from '../../test/fakes/branch-record.ts'
import { branchDetails } from './branches.ts'
import { plain } from './paint.ts'

const [WHOLE, PART] = ['a'.repeat(64), 'b'.repeat(64)]
const verdict = (kind: Verdict['kind'], shadow = false): Verdict => ({
  ...{ kind, shadow, digest: WHOLE, tier: 'approval_required', durationMs: 1, policies: [] },
  ...{ deny: [], hold: [], warn: [], obligations: [] },
})
const approvalOf = (digest: string): NonNullable<BranchRecord['approval']> => ({
  id: 'a23456789abc',
  digest,
  by: [
    { uid: 8, name: 'mail' },
    { uid: 9, name: 'e\u001bvil' },
  ],
})
const commitOf = (digest: string) => ({ id: 'c1', at: '2026-01-01T00:00:00.000Z', digest })

/** The line about the verdict. */
const saidOf = (change: Partial<BranchRecord>): string | undefined =>
  /^ +verdict {2}(.*)$/m.exec(
    branchDetails(branchRecord('abcdefghjk', { digest: WHOLE, ...change }), 0, plain),
  )?.[1]

describe('what is said of a verdict', () => {
  it('is nothing before there is one', () => expect(saidOf({})).toBeUndefined())

  it('is the verdict while nothing came of it', () => {
    expect(saidOf({ state: 'held', verdict: verdict('hold') })).toBe('hold')
    expect(saidOf({ state: 'held', verdict: verdict('deny') })).toBe('deny')
    expect(saidOf({ state: 'committed', verdict: verdict('allow'), commit: commitOf(WHOLE) })).toBe('allow')
  })

  it('names who approved what landed', () => {
    const landed = { state: 'committed', verdict: verdict('hold'), commit: commitOf(WHOLE) } as const
    expect(saidOf({ ...landed, approval: approvalOf(WHOLE) })).toBe(
      'hold, approved by mail (uid 8), e\\evil (uid 9)',
    )
    // A record from before approvals were on it: what it says is true all the same.
    expect(saidOf(landed)).toBe('hold, approved by a person')
  })

  it('says why one that is allowed waits all the same, and who let it through', () => {
    const asked = { verdict: verdict('allow'), afterwards: 'hold' } as const
    expect(saidOf({ ...asked, state: 'held' })).toBe(
      'allow; it waits for a person because that was asked for (--then hold)',
    )
    expect(
      saidOf({ ...asked, state: 'committed', commit: commitOf(WHOLE), approval: approvalOf(WHOLE) }),
    ).toBe('allow; it waited as asked for (--then hold) and was approved by mail (uid 8), e\\evil (uid 9)')
    expect(saidOf({ ...asked, state: 'committed', commit: commitOf(WHOLE) })).toBe('allow')
  })

  it('tells a part that landed from the rest that did not', () => {
    const part = { verdict: verdict('hold'), commit: commitOf(PART), approval: approvalOf(PART) } as const
    expect(saidOf({ ...part, state: 'stopped' })).toMatch(/^hold; what landed was approved by mail \(uid 8\)/)
  })

  it('says that a verdict in shadow held nothing', () =>
    expect(saidOf({ state: 'committed', verdict: verdict('hold', true), commit: commitOf(WHOLE) })).toBe(
      'hold (shadow: on record, not enforced)',
    ))
})

describe('what is said of starts after the first', () => {
  const lineOf = (change: Partial<BranchRecord>): string | undefined =>
    /^ +restart {2}(.*)$/m.exec(branchDetails(branchRecord('abcdefghjk', change), 60_000, plain))?.[1]
  const exit: AgentExit = {
    ...{ code: 3, signal: null, cause: 'exited', startedAt: '', endedAt: '' },
    ...{ cpuUserMs: 0, cpuSystemMs: 0, maxRssBytes: 0 },
  }
  const restart = { when: 'on-failure', times: 5 } as const
  const restarted = {
    code: null,
    signal: 'SIGSEGV',
    restart: 2,
    pauseMillis: 200,
    at: '1970-01-01T00:00:30.000Z',
  }

  it('is nothing where none was asked for', () => expect(lineOf({})).toBeUndefined())

  it('is what was asked for, and while it runs, how it goes', () => {
    expect(lineOf({ restart })).toBe('on-failure, at most 5 times')
    expect(lineOf({ restart: { when: 'always', times: null } })).toBe('always')
    expect(lineOf({ restart, restarted })).toBe(
      'on-failure, at most 5 times; ended 2 times, 30s ago with signal SIGSEGV',
    )
  })

  it('is how often it was, when it has ended', () => {
    expect(lineOf({ restart: { ...restart, times: 1 }, restarted, exit: { ...exit, restarts: 1 } })).toBe(
      'on-failure, at most once; was started again once',
    )
  })
})
