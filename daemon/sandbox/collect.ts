import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { type ProcessEnd, waitPidfd } from '../kernel/pidfd.ts'

/** For so long a process that is about to be gone is looked for in every turn of the loop. */
const TURNS_MILLIS = 2
const LONGEST_PAUSE_MILLIS = 20

/**
 * The end of a process whose last descriptor is closed, which is a moment before it can be collected: the kernel first ends
 * the rest of its namespace. That is mostly a fraction of a millisecond, the least that a timer waits is one.
 */
export async function collect(pidfd: number): Promise<ProcessEnd> {
  const patience = performance.now() + TURNS_MILLIS
  for (let pause = 1; ; ) {
    const end = waitPidfd(pidfd)
    if (end !== undefined) return end
    if (performance.now() < patience) await turn()
    else {
      await delay(pause)
      pause = Math.min(pause + 1, LONGEST_PAUSE_MILLIS)
    }
  }
}
