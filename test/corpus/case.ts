import type { Changeset } from '../../daemon/contract/changeset.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import type { VerdictKind } from '../../daemon/contract/verdict.ts'
import type { ShortChange } from '../fakes/changesets.ts'

/** One changeset and what the shipped policy must say about it. */
export interface Case {
  name: string
  changes: readonly ShortChange[]
  verdict: VerdictKind
  /** Rules that must be among the findings; for `allow` also the only ones that may be. */
  rules?: readonly string[]
  bases?: readonly string[]
  requests?: Changeset['requests']
  gate?: Partial<Profile['gate']>
  exit?: { code: number | null; cause: 'exited' | 'oom' }
}

export const modify = (path: string, content?: string, old?: string): ShortChange => ({
  kind: 'modify',
  path,
  ...(content === undefined ? {} : { content }),
  ...(old === undefined ? {} : { old }),
})
export const add = (path: string, content?: string | Uint8Array): ShortChange => ({
  path,
  ...(content === undefined ? {} : { content }),
})
export const remove = (path: string): ShortChange => ({ kind: 'delete', path })
export const folder = (path: string): ShortChange => ({ path, dir: true })
export const program = (path: string, content = '#!/bin/sh\necho hello\n'): ShortChange => ({
  path,
  mode: 0o755,
  content,
})
export const link = (path: string, target: string): ShortChange => ({ path, link: target, mode: 0o777 })

export const ELF = '\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0'
