import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { it } from 'vitest'
import { isExecutable } from './executable.ts'

/** `undefined` when the machine can run a test, else the reason why not, as a person would say it. */
export type Missing = string | undefined

/**
 * `it`, or where something is missing an `it` that skips and says why; `tools/test.mjs` prints the reasons and
 * fails for them when the tier was demanded. `const check = needs(root, program('nft'))`, then `check('…', () => …)`.
 */
export function needs(...missing: Missing[]): typeof it {
  const reasons = missing.filter((reason) => reason !== undefined)
  if (reasons.length === 0) return it
  const why = reasons.join('; ')
  const skipped = (name: string): void => it(name, (context) => context.skip(why))
  const ofAll = (cases: readonly unknown[]) => (name: string) =>
    it.for(cases)(name, (_one, context) => context.skip(why))
  return Object.assign(skipped, { for: ofAll, each: ofAll }) as unknown as typeof it
}

export const root: Missing = process.geteuid?.() === 0 ? undefined : 'needs root'

/** systemd is PID 1 and answers: scopes and the system bus can be asked for. */
export const systemd: Missing = existsSync('/run/systemd/system') ? undefined : 'needs systemd as PID 1'

/** One LSM of the running kernel, as in `lsm=`. */
export function lsm(name: string): Missing {
  const file = '/sys/kernel/security/lsm'
  const active = existsSync(file) ? readFileSync(file, 'utf8').trim().split(',') : []
  return active.includes(name) ? undefined : `needs the ${name} LSM (boot parameter lsm=)`
}

/** A program in PATH. */
export function program(name: string): Missing {
  const folders = `${process.env.PATH}${delimiter}/usr/sbin${delimiter}/sbin`.split(delimiter)
  return folders.some((folder) => isExecutable(join(folder, name))) ? undefined : `needs the program ${name}`
}
