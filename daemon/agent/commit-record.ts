import type { BranchRecord } from '../contract/branch.ts'
import { encodePath } from '../contract/bytes.ts'
import { type Change, type Changeset, isEcho } from '../contract/changeset.ts'
import type { Ports } from './ports.ts'

/** Bounds one line of the log; a commit has as many of them as it needs. */
const PATHS_PER_RECORD = 500

/**
 * What a commit is about to make real: who allowed it, and every path with what it becomes. Written before INTENT and with
 * one sync; `puzzlectl blame` reads it when the branch is long gone.
 */
export async function recordCommit(
  ports: Ports,
  record: BranchRecord,
  changeset: Changeset,
  commit: string,
  approval: string | null,
): Promise<void> {
  const { digest, requests } = changeset
  const paths = changeset.changes.filter((change) => !isEcho(change)).map((change) => entryOf(record, change))
  const facts = { commit, digest, approval, requests: requests.map(({ id }) => id), paths: paths.length }
  const records = [ports.audit.record('commit', record.id, facts)]
  for (let at = 0; at < paths.length; at += PATHS_PER_RECORD)
    records.push(
      ports.audit.record('commit-paths', record.id, {
        commit,
        paths: paths.slice(at, at + PATHS_PER_RECORD),
      }),
    )
  await Promise.all(records)
}

/** Absolute, because that is how somebody asks who touched a file. */
function entryOf(record: BranchRecord, { base, path, kind, new: now }: Change): Record<string, string> {
  const root = record.bases[base]?.path ?? ''
  const below = Buffer.concat([Buffer.from(`${root === '/' ? '' : root}/`), path])
  return { ...encodePath(below), kind, ...(now?.sha256 === undefined ? {} : { sha256: now.sha256 }) }
}
