// pure
import { PuzzledError } from '../daemon/lib/errors.ts'

const TIME: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 }
const SIZE: Readonly<Record<string, number>> = {
  '': 1,
  k: 1024,
  K: 1024,
  M: 1024 ** 2,
  G: 1024 ** 3,
  T: 1024 ** 4,
}
const TIMES = new Set(['wall', 'cpu'])

/** A size in bytes: `512M`. */
export function parseSize(text: string): number | null {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([a-zA-Z]?)$/.exec(text) ?? []
  const factor = SIZE[unit]
  return number === '' || factor === undefined ? null : Math.floor(Number(number) * factor)
}

/** `wall=10m`, `memory=2G`, `pids=100` in base units: seconds, bytes, counts. */
export function parseBudgets(pairs: readonly string[]): Record<string, number> {
  const budgets: Record<string, number> = {}
  for (const pair of pairs) {
    const match = /^([a-z]+)=(\d+(?:\.\d+)?)([a-zA-Z]?)$/.exec(pair)
    const [, kind = '', number = '', unit = ''] = match ?? []
    const factor = (TIMES.has(kind) ? TIME : SIZE)[unit]
    if (match === null || factor === undefined)
      throw new PuzzledError('usage', `"${pair}" is not a budget`, {
        hint: 'Write kind=value: wall=10m, cpu=300s, memory=2G, disk=500M, pids=100.',
      })
    budgets[kind] = Math.floor(Number(number) * factor)
  }
  return budgets
}
