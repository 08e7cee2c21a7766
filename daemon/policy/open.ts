import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeFiles } from '../lib/durable.ts'
import { ACTION_POLICY_FILE, ActionJudge } from './action-judge.ts'
import { ApprovalStore } from './approvals.ts'
import type { ContentReader } from './contents.ts'
import { DecisionLog } from './decision-log.ts'
import { PolicyGate } from './gate.ts'
import { LimitLedger } from './limits.ts'
import { policySources } from './policy-set.ts'

export interface PolicyOptions {
  /** Of the store; decisions, approvals and limits are kept in `policy/` below it. */
  root: string
  contents: ContentReader
  now: () => Date
  /** Threads that judge; the gate's own number where it is left out. */
  workers?: number
}

export interface OpenedPolicy {
  gate: PolicyGate
  judge: ActionJudge
  approvals: ApprovalStore
}

/** Everything that decides about changesets, over one store. */
export async function openPolicy({ root, contents, now, workers }: PolicyOptions): Promise<OpenedPolicy> {
  const directory = join(root, 'policy')
  for (const folder of ['approvals', 'decisions', 'decisions/inputs'])
    await mkdir(join(directory, folder), { recursive: true, mode: 0o700 })
  const ledger = new LimitLedger(nodeFiles, join(directory, 'limits.json'), now)
  const judge = new ActionJudge(ACTION_POLICY_FILE, ledger, now)
  const decisions = new DecisionLog(nodeFiles, join(directory, 'decisions'))
  const gate = new PolicyGate({
    ...(workers === undefined ? {} : { limits: { workers } }),
    sources: () => policySources(),
    contents,
    judge: (...args) => judge.judge(...args),
    record: (decision) => decisions.record(decision),
  })
  return { gate, judge, approvals: new ApprovalStore(nodeFiles, join(directory, 'approvals'), now) }
}
