import { PuzzledError } from '../lib/errors.ts'
import { entriesOf, type PathEntry, type Provenance, provenanceOf } from './provenance.ts'
import { type AuditRecord, branchOf, decodeRecord } from './record.ts'
import { linesOf, listSegments } from './segments.ts'

const PATHS = Buffer.from('"kind":"commit-paths"')

/**
 * The last commits that touched a path, or anything below it, newest first. Two passes over the log, each as far back as it
 * must: one looks for the path, the other for what else is on record about those branches. Nothing is indexed, so there is
 * no index that could be wrong; memory does not grow with the log.
 */
export async function blame(directory: string, path: string, most: number): Promise<Provenance[]> {
  const segments = (await listSegments(directory)).toReversed()
  const hits = await findCommits(directory, segments, path, most)
  const records = await recordsOf(directory, segments, hits)
  const found = [...hits].flatMap(([commit, { branch, entries }]) => {
    const own = (records.get(branch) ?? []).concat(records.get(commit) ?? [])
    return (
      provenanceOf(
        commit,
        entries,
        own.sort((a, b) => a.seq - b.seq),
      ) ?? []
    )
  })
  if (found.length > 0) return found.sort((a, b) => b.seq - a.seq).slice(0, most)
  throw new PuzzledError('branch-unknown', `No commit on record touched "${path}"`, {
    hint: 'Only what landed through puzzled is on record, and only as long as the log is kept.',
  })
}

interface Hit {
  branch: string
  entries: PathEntry[]
}

/** Newest segment first; a segment is read to its end, so that all commits of it are found before the limit counts. */
async function findCommits(
  directory: string,
  segments: readonly number[],
  path: string,
  most: number,
): Promise<Map<string, Hit>> {
  const hits = new Map<string, Hit>()
  const text = JSON.stringify(path).slice(1, -1)
  const needles = [Buffer.from(`"${text}"`), Buffer.from(`"${text}/`)]
  for (const segment of segments) {
    if (hits.size >= most) break
    for await (const lines of linesOf(directory, segment))
      for (const { bytes, whole } of lines) {
        if (!whole || !bytes.subarray(0, 300).includes(PATHS)) continue
        if (needles.some((needle) => bytes.includes(needle))) addHit(hits, decodeRecord(bytes), path)
      }
  }
  return hits
}

function addHit(hits: Map<string, Hit>, record: AuditRecord | null, path: string): void {
  const commit = record?.facts.commit
  if (record?.kind !== 'commit-paths' || typeof commit !== 'string') return
  const entries = entriesOf(record.facts).filter(
    (entry) => entry.path === path || entry.path.startsWith(`${path}/`),
  )
  if (entries.length === 0) return
  const known = hits.get(commit)
  if (known === undefined) hits.set(commit, { branch: record.branch, entries })
  else known.entries.push(...entries)
}

/** All records of these branches and commits but those of paths, by branch; back to the fork of each. */
async function recordsOf(
  directory: string,
  segments: readonly number[],
  hits: ReadonlyMap<string, Hit>,
): Promise<Map<string, AuditRecord[]>> {
  const open = new Set([...hits.values()].map(({ branch }) => branch))
  const wanted = new Set([...open, ...hits.keys()])
  const records = new Map<string, AuditRecord[]>()
  for (const segment of segments) {
    if (open.size === 0) break
    for await (const lines of linesOf(directory, segment))
      for (const { bytes, whole } of lines) {
        const branch = whole ? branchOf(bytes) : ''
        if (!wanted.has(branch) || bytes.subarray(0, 300).includes(PATHS)) continue
        const record = decodeRecord(bytes)
        if (record === null) continue
        records.set(branch, [...(records.get(branch) ?? []), record])
        if (record.kind === 'fork') open.delete(branch)
      }
  }
  return records
}
