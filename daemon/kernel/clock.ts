import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import type { ClockMark } from '../contract/branch.ts'

const TRIES = 5
/** /proc/uptime has hundredths of a second. */
const NARROW_S = 0.02

/** How the wall clock stands to the time since the boot, which nobody can set and which counts a suspended machine, too. */
export function readClock(): ClockMark {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  let width = Number.POSITIVE_INFINITY
  let bootedAt = 0
  // Between two readings this thread may have waited for a processor: the narrowest pair counts.
  for (let tries = 0; tries < TRIES && width > NARROW_S; tries++) {
    const before = uptime()
    const now = Date.now()
    const after = uptime()
    if (after - before >= width) continue
    width = after - before
    bootedAt = Math.round(now - before * 1000)
  }
  return { boot, bootedAt }
}
