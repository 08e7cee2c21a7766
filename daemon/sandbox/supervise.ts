import { setTimeout as delay } from 'node:timers/promises'
import type { AgentExit } from '../contract/branch.ts'

/** When an agent that has ended is started again. Ends that the daemon or a person caused are always final. */
export interface RestartPolicy {
  readonly restart: 'never' | 'on-failure' | 'always'
  /** Starts after the first; then the last exit stands. */
  readonly attempts: number
  readonly firstPauseMillis: number
  readonly longestPauseMillis: number
  /** An agent that ran this long is healthy: the next failure counts as the first. */
  readonly healthyMillis: number
}

export const DEFAULT_RESTARTS: RestartPolicy = {
  restart: 'never',
  attempts: 5,
  firstPauseMillis: 500,
  longestPauseMillis: 60_000,
  healthyMillis: 60_000,
}

/** Milliseconds until the next start, or null when the exit is final. `failures` counts starts in a row, this one included. */
export function nextStart(policy: RestartPolicy, exit: AgentExit, failures: number): number | null {
  const failed = exit.code !== 0
  const wanted = policy.restart === 'always' || (policy.restart === 'on-failure' && failed)
  const byItself = exit.cause === 'exited' || exit.cause === 'signal' || exit.cause === 'oom'
  if (!wanted || !byItself || failures > policy.attempts) return null
  return Math.min(policy.firstPauseMillis * 2 ** (failures - 1), policy.longestPauseMillis)
}

export interface Supervised {
  /** The exit after which nothing was started any more. */
  readonly finished: Promise<AgentExit>
  /** No further start; an agent that runs is left to its end. */
  stop(): void
}

interface Startable {
  readonly exited: Promise<AgentExit>
}

/**
 * Keeps an agent running. `start` begins a new one in the same branch; when it throws, that is the end, because what
 * cannot be started once will not be by trying again.
 */
export function supervise(
  start: () => Promise<Startable>,
  policy: RestartPolicy,
  restarted: (exit: AgentExit, pauseMillis: number) => void = () => undefined,
): Supervised {
  const stopped = new AbortController()
  const run = async (): Promise<AgentExit> => {
    for (let failures = 0; ; ) {
      const exit = await (await start()).exited
      const ran = Date.parse(exit.endedAt) - Date.parse(exit.startedAt)
      failures = ran >= policy.healthyMillis ? 1 : failures + 1
      const pause = stopped.signal.aborted ? null : nextStart(policy, exit, failures)
      if (pause === null) return exit
      restarted(exit, pause)
      const waited = await delay(pause, true, { signal: stopped.signal }).catch(() => false)
      if (!waited) return exit
    }
  }
  return { finished: run(), stop: () => stopped.abort() }
}
