// pure
import { PuzzledError } from '../daemon/lib/errors.ts'

const SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 }

/** `90`, `90s`, `10m`, `2h` in seconds. */
export function parseDuration(text: string, option: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text) ?? []
  const seconds = number === '' ? 0 : Number(number) * (SECONDS[unit] ?? 0)
  if (seconds > 0) return seconds
  throw new PuzzledError('usage', `${option} ${text} is not a time`, { hint: 'Write 30s, 10m or 2h.' })
}
