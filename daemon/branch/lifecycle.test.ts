import { describe, expect, it } from 'vitest'
import { BRANCH_STATES, isTerminal } from '../contract/states.ts'
import {
  afterRestart,
  canMove,
  eventsBetween,
  LIFECYCLE_EVENTS,
  next,
  reachable,
  refusal,
} from './lifecycle.ts'

describe('lifecycle', () => {
  it('has a restarted cell in every state that is not terminal, and none in the others', () => {
    for (const state of BRANCH_STATES) expect(next(state, 'restarted') === undefined).toBe(isTerminal(state))
  })

  it('lets no event leave a terminal state', () => {
    for (const event of LIFECYCLE_EVENTS) {
      expect(next('committed', event)).toBeUndefined()
      expect(next('discarded', event)).toBeUndefined()
    }
  })

  it('reaches committed only through committing, and committing only after an allowed digest', () => {
    const into = (to: (typeof BRANCH_STATES)[number]) => BRANCH_STATES.filter((from) => canMove(from, to))
    expect(into('committed')).toEqual(['committing'])
    expect(into('committing')).toEqual(['staging', 'commit-stuck'])
    expect(into('staging')).toEqual(['reviewing', 'held'])
  })

  it('leaves committing only as committed, stopped (undone) or commit-stuck', () => {
    expect(reachable('committing')).toEqual(['stopped', 'committed', 'commit-stuck'])
  })

  it('cannot discard what may have touched the base', () => {
    for (const state of ['staging', 'committing', 'commit-stuck'] as const)
      expect(canMove(state, 'discarding')).toBe(false)
  })

  it('reaches a terminal state from everywhere', () => {
    for (const start of BRANCH_STATES) {
      const seen = new Set([start])
      for (const state of seen) for (const to of reachable(state)) seen.add(to)
      expect([...seen].some(isTerminal)).toBe(true)
    }
  })

  it('answers a restart, and the answer is stable or goes on to be answered', () => {
    for (const state of BRANCH_STATES) {
      const after = afterRestart(state)
      expect(afterRestart(after)).toBe(after)
    }
  })

  it('names what would have been possible', () => {
    expect(refusal('stopped', 'committed')).toContain('"reviewing"')
    expect(refusal('discarded', 'running')).toBe('the branch is discarded, which is final')
    expect(eventsBetween('held', 'staging')).toEqual(['approve'])
  })
})
