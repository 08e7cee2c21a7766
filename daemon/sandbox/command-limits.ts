import type { CommandLimits } from '../contract/engine.ts'
import { SMALLEST_MEMORY } from '../contract/profile.ts'
import { limitCgroup } from '../kernel/cgroup-limits.ts'
import { PuzzledError } from '../lib/errors.ts'
import { aboutLimit } from './kernel-limits.ts'

/**
 * Sets the limits that somebody asked for one command. Nobody reads a table of grants behind it, so one that the host cannot hold is
 * a refusal, and so is memory in which it cannot start: that would look like a program that crashed.
 */
export function limitCommand(cgroup: string, { memory, pids, cpus }: CommandLimits): void {
  if (memory !== undefined && memory < SMALLEST_MEMORY)
    throw new PuzzledError(
      'usage',
      `A memory limit of ${memory} bytes is less than a command needs to start`,
      {
        hint: `Give it at least ${SMALLEST_MEMORY / 1024 ** 2} MiB.`,
      },
    )
  const [missing] = limitCgroup(cgroup, {
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    ...(pids === undefined ? {} : { pids }),
    ...(cpus === undefined ? {} : { cpus }),
  })
  if (missing === undefined) return
  const { what, feature } = aboutLimit(missing)
  throw new PuzzledError('feature-missing', `This host cannot hold a command to a ${what} of its own`, {
    hint: 'puzzlectl doctor says what is missing and what mends it; the limits of the branch hold in any case',
    data: { feature, limit: missing },
  })
}
