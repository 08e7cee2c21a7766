import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from './lib/config.ts'
import { nodeFiles } from './lib/durable.ts'
import { PuzzledError } from './lib/errors.ts'
import { readConfig } from './lib/read-config.ts'
import { ACTION_POLICY_FILE, ActionJudge } from './policy/action-judge.ts'
import { PolicyGate } from './policy/gate.ts'
import { LimitLedger } from './policy/limits.ts'
import { policySources } from './policy/policy-set.ts'
import { checkPolicies } from './policy/reload.ts'

/** `--check-config`: the configuration and everything that a start or a reload would read. Throws what is wrong. */
export async function checkConfig(path: string): Promise<void> {
  await readConfig(path)
  const now = (): Date => new Date()
  const gate = new PolicyGate({ limits: { workers: 1 }, sources: () => policySources(), contents: null })
  // Nothing is judged, so nothing is counted: the ledger's file is never made.
  const ledger = new LimitLedger(nodeFiles, join(tmpdir(), 'puzzled-no-limits.json'), now)
  const problems = await checkPolicies({ gate, judge: new ActionJudge(ACTION_POLICY_FILE, ledger, now) })
  if (problems.length > 0) throw new PuzzledError('config-invalid', problems.join('\n'))
}

const FIXED = ['state_dir', 'runtime_dir', 'bus', 'metrics'] as const

/** What a running daemon holds open cannot become another; that is said, instead of half a reload. */
export function refuseFixedChanges(before: Config, next: Config): void {
  const changed = FIXED.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(next[key]))
  if (changed.length > 0)
    throw new PuzzledError('config-invalid', `${changed.join(', ')} cannot change while the daemon runs`, {
      hint: 'systemctl restart puzzled',
    })
}
