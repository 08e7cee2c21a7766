import { readFileSync } from 'node:fs'
import type { Grant } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'

type Limits = Profile['rlimits']

const LINES: Readonly<Record<keyof Limits, string>> = {
  nofile: 'Max open files',
  fsize: 'Max file size',
  stack: 'Max stack size',
  nproc: 'Max processes',
  memlock: 'Max locked memory',
}
const CAP_SYS_RESOURCE = 24n

/**
 * The profile's limits, lowered to what this process may set: without CAP_SYS_RESOURCE (a daemon in a container, a
 * rootless engine) nobody can give an agent more than they have. Lower is never less safe; the difference is said.
 */
export function attainableLimits(wanted: Limits): { limits: Limits; grants: readonly Grant[] } {
  const status = readFileSync('/proc/self/status', 'utf8')
  const effective = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(status)?.[1] ?? '0'}`)
  if ((effective >> CAP_SYS_RESOURCE) & 1n) return { limits: wanted, grants: [] }
  return lowered(wanted, readFileSync('/proc/self/limits', 'utf8'))
}

/** `table` is /proc/self/limits: name, soft limit, hard limit, unit. */
export function lowered(wanted: Limits, table: string): { limits: Limits; grants: readonly Grant[] } {
  const limits: { -readonly [Name in keyof Limits]: Limits[Name] } = { ...wanted }
  const grants: Grant[] = []
  for (const name of Object.keys(LINES) as (keyof Limits)[]) {
    const value = wanted[name]
    const hard = new RegExp(`^${LINES[name]} +\\S+ +(\\d+) `, 'm').exec(table)?.[1]
    if (value === undefined || hard === undefined || value <= Number(hard)) continue
    limits[name] = Number(hard)
    grants.push({ what: `limit ${name}`, requested: String(value), granted: hard, full: false })
  }
  return { limits, grants }
}
