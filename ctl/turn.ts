import { setTimeout as sleep } from 'node:timers/promises'
import { PuzzledError } from '../daemon/lib/errors.ts'

/** With one that holds the store while an agent runs; a few of those are over at once. */
export const PATIENCE_MS = 5_000
/** With one that does not: it starts, judges or commits, and a busy machine takes its time for that. */
const TIMES_LONGER = 12
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
  let before: { who: string; since: number } | undefined
  for (;;)
    try {
      return await open()
    } catch (error) {
      if (!isLocked(error)) throw error
      const { holder, long } = error.data ?? {}
      const who = `${String(holder)} ${long === true}`
      if (before?.who !== who) before = { who, since: clock.now() }
      if (clock.now() - before.since >= patience * (long === true ? 1 : TIMES_LONGER)) throw error
      await clock.sleep(AGAIN_MS)
    }
}

export const isLocked = (error: unknown): error is PuzzledError =>
  error instanceof PuzzledError && error.code === 'state-locked'
