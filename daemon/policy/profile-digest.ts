// pure
import { createHash } from 'node:crypto'
import type { Profile } from '../contract/profile.ts'

/** Of exactly what the profile grants, however it was written. */
export const digestOf = (profile: Profile): string =>
  createHash('sha256').update(canonicalJson(profile)).digest('hex')

/** JSON with sorted keys. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )
}
