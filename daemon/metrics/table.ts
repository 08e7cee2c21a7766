// pure

import { DENIAL_LAYERS } from '../contract/denial.ts'
import { BUDGET_KINDS } from '../contract/profile.ts'
import { BRANCH_STATES } from '../contract/states.ts'

/**
 * Every metric of the daemon. A label can have the values that stand here and no other, so nothing that an agent says can
 * become a series: what is not in the list is counted as `other`.
 */
export interface MetricShape {
  readonly type: 'counter' | 'gauge' | 'histogram' | 'info'
  readonly help: string
  /** The name must end in it. */
  readonly unit?: 'seconds' | 'bytes' | 'ratio'
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** Upper bounds of the buckets, ascending, without the infinite one. */
  readonly buckets?: readonly number[]
}

const FAST = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const SLOW = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const RESULT = { result: ['ok', 'failed'] }
const CLASS = { class: ['live', 'read', 'queue', 'deny'] }

const counter = (help: string, labels: MetricShape['labels'] = {}): MetricShape => ({
  type: 'counter',
  help,
  labels,
})

const seconds = (help: string, labels: MetricShape['labels'], buckets: readonly number[]): MetricShape => ({
  type: 'histogram',
  unit: 'seconds',
  help,
  labels,
  buckets,
})

const gauge = (help: string, unit?: MetricShape['unit']): MetricShape => ({
  type: 'gauge',
  help,
  labels: {},
  ...(unit === undefined ? {} : { unit }),
})

const SHAPES = {
  puzzled_build: { type: 'info', help: 'Version of the daemon.', labels: {} },
  puzzled_agents: gauge('Agents that run now.'),
  puzzled_branch_moves: counter('Moves of branches into a state.', { to: BRANCH_STATES }),
  puzzled_start_seconds: seconds(
    "From the request to the agent's first instruction; the fork before it not included.",
    RESULT,
    FAST,
  ),
  puzzled_agent_exits: counter('Agents that ended, by the reason.', {
    cause: ['exited', 'signal', 'timeout', 'oom', 'budget', 'daemon-restart'],
  }),
  puzzled_agent_restarts: counter('Agents that had ended and were to be started again.'),
  puzzled_diff_seconds: seconds('Comparing a branch with its bases.', RESULT, SLOW),
  puzzled_diff_changes: counter('Changes that comparisons found.'),
  puzzled_gate_seconds: seconds(
    'Judging a changeset.',
    { verdict: ['allow', 'hold', 'deny', 'failed'] },
    FAST,
  ),
  puzzled_commit_seconds: seconds(
    'Landing a changeset, from staging to the durable end.',
    { result: ['ok', 'conflict', 'stuck', 'failed'] },
    SLOW,
  ),
  puzzled_commit_changes: counter('Changes that commits landed, the times of directories included.'),
  puzzled_approvals: counter('Decisions of reviewers.', { decision: ['approve', 'reject'] }),
  puzzled_audit_append_seconds: seconds('Until a record of the audit log is on disk.', RESULT, FAST),
  puzzled_proxy_request_seconds: seconds(
    'Requests of agents through the proxy, to the last byte of the answer.',
    CLASS,
    FAST,
  ),
  puzzled_proxy_bytes: {
    type: 'counter',
    unit: 'bytes',
    help: 'Bytes of requests that left the host and of answers that came back.',
    labels: { direction: ['out', 'in'] },
  },
  puzzled_queue_requests: counter('Held requests, by the state they came into.', {
    state: ['queued', 'approved', 'sending', 'sent', 'failed', 'unknown', 'dropped', 'skipped'],
  }),
  puzzled_denials: counter('What was refused to agents, by the layer that refused.', {
    layer: DENIAL_LAYERS,
  }),
  puzzled_budget_warnings: counter('Budgets of which 90 % were used.', { budget: BUDGET_KINDS }),
  puzzled_budget_exceeded: counter('Budgets that were used up.', { budget: BUDGET_KINDS }),
  puzzled_refused_calls: counter('Calls on the bus that were refused.'),
  puzzled_warnings: counter('Warnings of the daemon; the text is in the journal and in the events.'),
  puzzled_event_loop_busy_ratio: gauge(
    'Share of the time since the last look that the event loop was busy.',
    'ratio',
  ),
  puzzled_event_loop_delay_seconds: gauge(
    'Longest time since the last look in which the event loop answered nobody.',
    'seconds',
  ),
  process_cpu_seconds: {
    type: 'counter',
    unit: 'seconds',
    help: 'CPU time of the daemon itself.',
    labels: {},
  },
  process_resident_memory_bytes: gauge('Memory of the daemon itself.', 'bytes'),
  process_start_time_seconds: gauge('When the daemon was started, since 1970.', 'seconds'),
} as const satisfies Readonly<Record<string, MetricShape>>

export type MetricName = keyof typeof SHAPES
export const METRICS: Readonly<Record<MetricName, MetricShape>> = SHAPES

/** The names of the lines of one metric, as queries use them. */
export function seriesOf(name: string, { type }: MetricShape): readonly string[] {
  if (type === 'counter') return [`${name}_total`]
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`]
  return [type === 'info' ? `${name}_info` : name]
}
