// pure
import type { CommandLimits } from '../daemon/contract/engine.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { parseSize } from './budget-option.ts'

const whole = (text: string): number | null => (/^\d+$/.test(text) ? Number(text) : null)
const share = (text: string): number | null => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : null)

const KINDS: Readonly<Record<keyof CommandLimits, (text: string) => number | null>> = {
  memory: parseSize,
  pids: whole,
  cpus: share,
}
const isKind = (text: string): text is keyof CommandLimits => Object.hasOwn(KINDS, text)

/** `memory=512M`, `pids=50`, `cpus=0.5` of one command; bytes, counts, processors. */
export function parseLimits(pairs: readonly string[]): CommandLimits {
  const limits: CommandLimits = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const kind = pair.slice(0, at)
    const value = isKind(kind) ? KINDS[kind](pair.slice(at + 1)) : null
    if (!isKind(kind) || value === null || value <= 0)
      throw new PuzzledError('usage', `"${pair}" is not a limit of a command`, {
        hint: 'Write kind=value: memory=512M, pids=50, cpus=0.5; --timeout limits its time.',
      })
    limits[kind] = value
  }
  return limits
}
