import { describe, expect, it } from 'vitest'
import type { AgentExit } from '../../daemon/contract/branch.ts'
import type { Outcome } from '../../daemon/contract/engine.ts'
import type { Verdict } from '../../daemon/contract/verdict.ts'
import { runStatus } from './exit-status.ts'

const exit = (change: Partial<AgentExit> = {}): AgentExit => ({
  code: 0,
  signal: null,
  cause: 'exited',
  startedAt: '',
  endedAt: '',
  cpuUserMs: 0,
  cpuSystemMs: 0,
  maxRssBytes: 0,
  ...change,
})

const outcome = (change: Partial<Outcome>): Outcome => ({
  branch: 'b',
  name: null,
  state: 'committed',
  exit: exit(),
  totals: { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 },
  requests: 0,
  digest: null,
  verdict: null,
  commit: null,
  conflicts: [],
  warnings: [],
  reason: '',
  ...change,
})

const verdict = (kind: Verdict['kind'], rules: readonly string[]): Verdict => ({
  kind,
  digest: '',
  tier: 'auto',
  deny: [],
  hold: rules.map((rule) => ({ rule, severity: 'medium', message: '' })),
  warn: [],
  obligations: [],
  policies: [],
  durationMs: 0,
  shadow: false,
})

describe('exit status of run', () => {
  it.each([
    ['committed', outcome({}), 0],
    ['nothing changed, agent failed', outcome({ state: 'discarded', exit: exit({ code: 7 }) }), 7],
    [
      'output that a full disk did not take',
      outcome({ exit: exit({ lost: [{ stream: 'stdout', errno: 'ENOSPC' }] }) }),
      73,
    ],
    [
      'the same, and the agent failed itself',
      outcome({ exit: exit({ code: 4, lost: [{ stream: 'stdout', errno: 'ENOSPC' }] }) }),
      4,
    ],
    [
      'input that could not be read',
      outcome({ exit: exit({ lost: [{ stream: 'stdin', errno: 'EIO' }] }) }),
      71,
    ],
    ['held', outcome({ state: 'held', verdict: verdict('hold', ['x']) }), 120],
    ['denied', outcome({ state: 'held', verdict: verdict('deny', []) }), 121],
    ['conflict', outcome({ state: 'held', conflicts: [{ path: 'a', message: '' }] }), 122],
    ['stuck', outcome({ state: 'commit-stuck' }), 123],
    [
      'time limit',
      outcome({ state: 'held', exit: exit({ code: null, signal: 'SIGKILL', cause: 'timeout' }) }),
      124,
    ],
    [
      'killed',
      outcome({ state: 'discarded', exit: exit({ code: null, signal: 'SIGKILL', cause: 'signal' }) }),
      137,
    ],
    ['real-time signal', outcome({ exit: exit({ code: null, signal: 'SIG40', cause: 'signal' }) }), 168],
    [
      'held only because the agent failed',
      outcome({ state: 'held', exit: exit({ code: 3 }), verdict: verdict('hold', ['agent-failed']) }),
      3,
    ],
    [
      'held for more than that',
      outcome({
        state: 'held',
        exit: exit({ code: 3 }),
        verdict: verdict('hold', ['agent-failed', 'secret']),
      }),
      120,
    ],
  ])('%s', (_name, given, status) => expect(runStatus(given, 'gate')).toBe(status))

  it('a hold that was asked for is not news', () => {
    expect(
      runStatus(outcome({ state: 'held', exit: exit({ code: 5 }), verdict: verdict('hold', ['x']) }), 'hold'),
    ).toBe(5)
  })
})
