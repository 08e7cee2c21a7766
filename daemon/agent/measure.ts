import type { AgentExit } from '../contract/branch.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Registry } from '../metrics/registry.ts'
import type { MetricName } from '../metrics/table.ts'
import type { Ports } from './ports.ts'

/** The same ports with their time taken. What a use case does and what it is told stay the same. */
export function measuring(ports: Ports, registry: Registry): Ports {
  const timed = timer(registry)
  return {
    ...ports,
    launcher: {
      start: async (request) => {
        const agent = await timed('puzzled_start_seconds', () => ports.launcher.start(request))
        const count = ({ cause }: AgentExit): void => registry.count('puzzled_agent_exits', { cause })
        // Whoever waits for the end hears of a failure; here there is nothing to count then.
        agent.exited.then(count, () => undefined)
        return agent
      },
      sweep: (id) => ports.launcher.sweep(id),
    },
    differ: {
      diff: async (...args) => {
        const changeset = await timed('puzzled_diff_seconds', () => ports.differ.diff(...args))
        registry.count('puzzled_diff_changes', {}, changeset.changes.length)
        return changeset
      },
      select: (...args) => ports.differ.select(...args),
      withRequests: (...args) => ports.differ.withRequests(...args),
      content: (...args) => ports.differ.content(...args),
    },
    gate: {
      evaluate: (...args) =>
        timed(
          'puzzled_gate_seconds',
          () => ports.gate.evaluate(...args),
          (verdict) => ({ verdict: verdict?.kind ?? 'failed' }),
        ),
      consume: (...args) => ports.gate.consume(...args),
    },
    committer: {
      commit: async (...args) => {
        const landed = await timed('puzzled_commit_seconds', () => ports.committer.commit(...args), landing)
        registry.count('puzzled_commit_changes', {}, landed.files)
        return landed
      },
      commits: (...args) => ports.committer.commits(...args),
      revert: (...args) => timed('puzzled_commit_seconds', () => ports.committer.revert(...args), landing),
    },
    audit: {
      record: (...args) => timed('puzzled_audit_append_seconds', () => ports.audit.record(...args)),
    },
  }
}

type LabelsOf<Result> = (result: Result | undefined, error: unknown) => Readonly<Record<string, string>>

const byResult: LabelsOf<unknown> = (_result, error) => ({ result: error === undefined ? 'ok' : 'failed' })

const landing: LabelsOf<unknown> = (_result, error) => {
  if (error === undefined) return { result: 'ok' }
  const code = error instanceof PuzzledError ? error.code : ''
  return { result: code === 'conflict' || code === 'stuck' ? code : 'failed' }
}

const timer =
  (registry: Registry) =>
  async <Result>(
    name: MetricName,
    work: () => Promise<Result>,
    labels: LabelsOf<Result> = byResult,
  ): Promise<Result> => {
    const started = performance.now()
    const took = (): number => (performance.now() - started) / 1000
    try {
      const result = await work()
      registry.observe(name, took(), labels(result, undefined))
      return result
    } catch (error) {
      registry.observe(name, took(), labels(undefined, error))
      throw error
    }
  }

/** What events say, counted. Denials by the network and the kernel are counted where they happen: of many alike only a few are events. */
export function countEvent(registry: Registry, event: PuzzledEvent): void {
  switch (event.kind) {
    case 'state':
      registry.count('puzzled_branch_moves', { to: event.to })
      break
    case 'approval':
      registry.count('puzzled_approvals', { decision: event.decision })
      break
    case 'request':
      registry.count('puzzled_queue_requests', { state: event.state })
      break
    case 'budget':
      registry.count(event.percent >= 100 ? 'puzzled_budget_exceeded' : 'puzzled_budget_warnings', {
        budget: event.budget,
      })
      break
    case 'restart':
      registry.count('puzzled_agent_restarts')
      break
    case 'denial':
      if (!COUNTED_LAYERS.has(event.layer)) registry.count('puzzled_denials', { layer: event.layer })
      break
    case 'warning':
      registry.count('puzzled_warnings')
      break
  }
}

const COUNTED_LAYERS = new Set<string>(['proxy', 'dns', 'nft', 'landlock', 'seccomp', 'lsm'])
