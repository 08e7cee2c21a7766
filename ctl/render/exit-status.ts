// pure
import { constants } from 'node:os'
import type { AgentExit } from '../../daemon/contract/branch.ts'
import type { Outcome } from '../../daemon/contract/engine.ts'
import { exitStatusOf } from '../../daemon/contract/errors.ts'

/** 128+n for a signal, as shells do. */
export function agentStatus(exit: AgentExit): number {
  if (exit.cause === 'budget' || exit.cause === 'timeout' || exit.cause === 'oom')
    return exitStatusOf('budget-exceeded')
  // It knows nothing of what was lost behind it: its own success would be the caller's loss.
  if (exit.code === 0 && exit.lost !== undefined) return exitStatusOf(lostCode(exit.lost))
  if (exit.signal === null) return exit.code ?? exitStatusOf('internal')
  const number =
    (constants.signals as Readonly<Record<string, number>>)[exit.signal] ?? signalNumber(exit.signal)
  return 128 + number
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

const lostCode = (lost: NonNullable<AgentExit['lost']>): 'no-space' | 'kernel-refused' =>
  lost.some(({ errno }) => FULL.has(errno)) ? 'no-space' : 'kernel-refused'

/** Real-time signals are reported as `SIG34`. */
const signalNumber = (name: string): number => Number(/^SIG(\d+)$/.exec(name)?.[1] ?? 0)

/**
 * What `puzzlectl run` leaves with. The agent's own status when the outcome was as asked, or when its failure is the
 * only reason why the branch is held: then the failure is the news, not the hold.
 */
export function runStatus(outcome: Outcome, asked: 'gate' | 'hold' | 'discard'): number {
  const exit = outcome.exit
  if (outcome.state === 'commit-stuck' || outcome.state === 'discard-stuck') return exitStatusOf('stuck')
  if (exit !== null && exit.cause !== 'exited' && exit.cause !== 'signal') return agentStatus(exit)
  if (outcome.conflicts.length > 0) return exitStatusOf('conflict')
  const own = exit === null ? exitStatusOf('internal') : agentStatus(exit)
  if (outcome.state !== 'held') return own
  if (outcome.verdict?.kind === 'deny') return exitStatusOf('denied')
  if (asked === 'hold') return own
  return own !== 0 && onlyFailureHolds(outcome) ? own : exitStatusOf('held')
}

const onlyFailureHolds = (outcome: Outcome): boolean =>
  outcome.verdict?.hold.every((finding) => finding.rule === 'agent-failed') ?? false
