import { describe, expect, it } from 'vitest'
import type { AgentExit } from '../contract/branch.ts'
import { DEFAULT_RESTARTS, nextStart, type RestartPolicy, supervise } from './supervise.ts'

const exitOf = (code: number, cause: AgentExit['cause'] = 'exited', ranMillis = 10): AgentExit => ({
  code,
  signal: null,
  cause,
  startedAt: new Date(0).toISOString(),
  endedAt: new Date(ranMillis).toISOString(),
  cpuUserMs: 0,
  cpuSystemMs: 0,
  maxRssBytes: 0,
})
const policy: RestartPolicy = { ...DEFAULT_RESTARTS, restart: 'on-failure', firstPauseMillis: 1, attempts: 3 }

describe('the next start', () => {
  it('comes after a pause that doubles, up to a limit', () => {
    const slow = { ...policy, firstPauseMillis: 100, longestPauseMillis: 250 }
    expect([1, 2, 3, 4].map((failures) => nextStart(slow, exitOf(1), failures))).toEqual([
      100,
      200,
      250,
      null,
    ])
  })

  it('never comes after success, unless always, nor after an end that was meant', () => {
    expect(nextStart(policy, exitOf(0), 1)).toBeNull()
    expect(nextStart({ ...policy, restart: 'always' }, exitOf(0), 1)).toBe(1)
    expect(nextStart({ ...policy, restart: 'never' }, exitOf(1), 1)).toBeNull()
    for (const cause of ['timeout', 'budget', 'daemon-restart'] as const)
      expect(nextStart({ ...policy, restart: 'always' }, exitOf(1, cause), 1)).toBeNull()
  })
})

describe('a supervised agent', () => {
  const agents = (exits: readonly AgentExit[]) => {
    const starts: number[] = []
    const start = async () => {
      const exit = exits[starts.length]
      starts.push(starts.length)
      if (exit === undefined) throw new Error('cannot start')
      return { exited: Promise.resolve(exit) }
    }
    return { starts, start }
  }

  it('is started again until it succeeds', async () => {
    const { starts, start } = agents([exitOf(1), exitOf(2), exitOf(0)])
    expect(await supervise(start, policy).finished).toMatchObject({ code: 0 })
    expect(starts).toHaveLength(3)
  })

  it('is given up after as many attempts', async () => {
    const { starts, start } = agents(Array.from({ length: 9 }, () => exitOf(1)))
    expect(await supervise(start, policy).finished).toMatchObject({ code: 1 })
    expect(starts).toHaveLength(4)
  })

  it('has all of its attempts again after it was healthy', async () => {
    const exits = [exitOf(1), exitOf(1), exitOf(1, 'exited', 70_000), exitOf(1), exitOf(1), exitOf(0)]
    expect(await supervise(agents(exits).start, policy).finished).toMatchObject({ code: 0 })
  })

  it('is not started again when supervision stops, and a failed start is an error', async () => {
    const { starts, start } = agents([exitOf(1), exitOf(1)])
    const supervised = supervise(start, { ...policy, firstPauseMillis: 60_000 }, () => supervised.stop())
    expect(await supervised.finished).toMatchObject({ code: 1 })
    expect(starts).toHaveLength(1)
    await expect(supervise(agents([exitOf(1)]).start, policy).finished).rejects.toThrow('cannot start')
  })
})
