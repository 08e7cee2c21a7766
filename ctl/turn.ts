import { setTimeout as sleep } from 'node:timers/promises'
import { PuzzledError } from '../daemon/lib/errors.ts'

/** With one that holds the store while an agent runs; a few of those are over at once. */
export const PATIENCE_MS = 5_000
/** With one that does not: it starts, judges or commits, and a busy machine takes its time for that. */
const TIMES_LONGER = 12
const AGAIN_MS = 50
/** Whoever waits for longer wants to know for what. */
const SILENT_MS = 2_000

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
  tell: (sentence: string) => void = () => undefined,
): Promise<Result> {
  let before: { who: string; since: number; told: boolean } | undefined
  for (;;)
    try {
      return await open()
    } catch (error) {
      if (!isLocked(error)) throw error
      const { holder, long } = error.data ?? {}
      const who = `${String(holder)} ${long === true}`
      if (before?.who !== who) before = { who, since: clock.now(), told: false }
      const waited = clock.now() - before.since
      if (waited >= patience * (long === true ? 1 : TIMES_LONGER)) throw error
      if (waited >= SILENT_MS && !before.told) {
        before.told = true
        tell(`${error.message}: waiting`)
      }
      await clock.sleep(AGAIN_MS)
    }
}

export const isLocked = (error: unknown): error is PuzzledError =>
  error instanceof PuzzledError && error.code === 'state-locked'
