// pure
import type { Provenance, ToldProvenance } from '../audit/provenance.ts'
import { PuzzledError } from '../lib/errors.ts'

/** Paths that one answer tells of one commit. */
const MOST_ENTRIES = 1000

/**
 * Of commits that touched a path, those of branches that the caller may see. Others are told without what they are, and only
 * for paths that a visible commit touched as well: that somebody's file exists is nobody else's to learn.
 */
export function provenanceFor(
  path: string,
  found: readonly Provenance[],
  sees: (uid: number) => boolean,
  most: number,
): ToldProvenance[] {
  const visible = (one: Provenance): boolean => one.requester !== null && sees(one.requester)
  const known = new Set(found.filter(visible).flatMap(({ entries }) => entries.map((entry) => entry.path)))
  const told = found.flatMap((one) => {
    if (visible(one)) return [shortened(one)]
    const shared = one.entries.filter((entry) => known.has(entry.path))
    return shared.length === 0 ? [] : [shortened(withheld(one, shared))]
  })
  if (told.length > 0) return told.slice(0, most)
  throw new PuzzledError('branch-unknown', `No commit on record that you may see touched "${path}"`, {
    hint: 'Only what landed through puzzled is on record, and only as long as the log is kept.',
  })
}

const withheld = (one: Provenance, shared: Provenance['entries']): ToldProvenance => ({
  ...{ commit: '', time: one.time, seq: 0, state: one.state, branch: '', digest: '' },
  ...{ name: null, profile: null, profileSha256: null, requester: null, exit: null, verdict: null },
  ...{ command: [], policies: [], approvals: [], requests: [] },
  // Not even the digests of contents.
  entries: shared.map(({ path, path64, kind }) =>
    path64 === undefined ? { path, kind } : { path, path64, kind },
  ),
  withheld: true,
})

const shortened = (one: ToldProvenance): ToldProvenance =>
  one.entries.length <= MOST_ENTRIES
    ? one
    : { ...one, entries: one.entries.slice(0, MOST_ENTRIES), more: one.entries.length - MOST_ENTRIES }
