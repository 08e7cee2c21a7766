import type { Outcome } from '../../daemon/contract/engine.ts'
import { exitStatusOf } from '../../daemon/contract/errors.ts'
import { jsonText } from '../json.ts'
import { BANNER_HANG, bannerText } from '../render/banner.ts'
import type { VerbContext } from '../verb.ts'

/** Shows what a decision led to. 0 only when the branch landed (or had nothing to land). */
export async function showOutcome(context: VerbContext, outcome: Outcome): Promise<number> {
  if (context.json) await context.print(jsonText(outcome))
  else await context.print(bannerText(outcome, context.paint), BANNER_HANG)
  return decisionStatus(outcome)
}

export function decisionStatus(outcome: Outcome): number {
  if (outcome.state === 'commit-stuck' || outcome.state === 'discard-stuck') return exitStatusOf('stuck')
  if (outcome.conflicts.length > 0) return exitStatusOf('conflict')
  if (outcome.state !== 'held') return 0
  return exitStatusOf(outcome.verdict?.kind === 'deny' ? 'denied' : 'held')
}
