import { setTimeout as sleep } from 'node:timers/promises'
import { PuzzledError } from '../daemon/lib/errors.ts'

/** Another command is soon done with the store; only one that holds an agent is not. */
export const PATIENCE_MS = 10_000
const AGAIN_MS = 50

export interface Clock {
  now(): number
  sleep(milliseconds: number): Promise<unknown>
}

const REAL: Clock = { now: () => performance.now(), sleep }

/**
 * Opens what one process at a time can have. The patience is for one holder: where several commands wait, each of those
 * before us has its own.
 */
export async function inTurn<Result>(
  open: () => Promise<Result>,
  patience: number,
  clock: Clock = REAL,
): Promise<Result> {
  let before: { holder: unknown; since: number } | undefined
  for (;;)
    try {
      return await open()
    } catch (error) {
      if (!isLocked(error)) throw error
      const { data: { holder } = {} } = error
      if (before === undefined || before.holder !== holder) before = { holder, since: clock.now() }
      if (clock.now() - before.since >= patience) throw error
      await clock.sleep(AGAIN_MS)
    }
}

export const isLocked = (error: unknown): error is PuzzledError =>
  error instanceof PuzzledError && error.code === 'state-locked'
