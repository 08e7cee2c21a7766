import type { Requester } from '../contract/branch.ts'
import type { Change } from '../contract/changeset.ts'
import { type Dir, type Disk, NO_NAME, nameOf } from '../lib/disk.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { digestOf } from './changeset.ts'
import type { CommitJob, JobBase, Sources } from './commit-context.ts'
import { KeptSources } from './commit-sources.ts'
import { readChanges } from './journal/changes.ts'
import type { Root } from './journal/format.ts'
import { parseJournal, type ReadJournal, stateOf } from './journal/reader.ts'
import { journalName } from './journal/writer.ts'
import { openAreas } from './staging-area.ts'

export interface Reverse {
  job: CommitJob
  sources: Sources
}

export interface RevertRequest {
  /** The commit to take back. */
  commit: string
  /** The id of the commit that does it. */
  as: string
  requester: Requester
  at: string
}

/** The reverse changeset of a commit and where its old content is kept. It lands like any other. */
export function reverseOf(disk: Disk, journalPath: string, request: RevertRequest): Reverse {
  const journal = disk.openRoot(journalPath)
  try {
    const read = readCommitted(disk, journal, request.commit)
    // What was kept for its undoing is the business of whoever it was made for.
    const { uid } = request.requester
    if (uid !== 0 && uid !== read.begin.requester) throw unknownCommit(request.commit)
    const changes = readChanges(disk, journal, request.commit).map(reverseChange)
    const bases = read.begin.roots.map(({ path }) => path)
    const areas = openAreas(disk, journal, read.begin.areas, request.commit, 'open')
    const sources = new KeptSources(disk, read.operations, areas, bases)
    try {
      return { job: reverseJob(disk, read, changes, request), sources }
    } catch (error) {
      sources.close()
      throw error
    }
  } finally {
    disk.close(journal)
  }
}

const reverseJob = (
  disk: Disk,
  { begin }: ReadJournal,
  changes: readonly Change[],
  request: RevertRequest,
): CommitJob => ({
  commit: request.as,
  branch: begin.branch,
  digest: digestOf({ bases: begin.roots.map(({ path }) => path), changes, requests: [] }),
  part: false,
  reverts: request.commit,
  requester: request.requester,
  at: request.at,
  // Compared by state: what the commit landed must still be there.
  forkedAtNs: null,
  allowSetuid: true,
  bases: begin.roots.map((root) => baseOf(disk, root)),
  changes,
})

export function readCommitted(disk: Disk, journal: Dir, commit: string): ReadJournal {
  let read: ReturnType<typeof parseJournal>
  try {
    read = parseJournal(disk.readFile(journal, nameOf(journalName(commit))))
  } catch (cause) {
    if (errnoOf(cause) !== 'ENOENT') throw cause
    throw unknownCommit(commit, cause)
  }
  if (read.kind !== 'read')
    throw new PuzzledError(
      'record-damaged',
      `The journal of commit ${commit} is ${read.kind}: ${read.reason}`,
      {
        hint: 'It was kept as it is and nothing was done.',
      },
    )
  if (stateOf(read) !== 'done') throw new PuzzledError('wrong-state', `Commit ${commit} was not finished`)
  return read
}

const unknownCommit = (commit: string, cause?: unknown): PuzzledError =>
  new PuzzledError('branch-unknown', `There is no commit ${JSON.stringify(commit)} to revert`, {
    ...(cause === undefined ? {} : { cause }),
    hint: 'Retention may have removed it; the audit log still knows it.',
  })

/** The commit says which filesystem it landed on; one that does not say so is taken where it stands now. */
const baseOf = (disk: Disk, { path, dev, filesystemId }: Root): JobBase =>
  filesystemId === undefined ? { path, dev: devOf(disk, path) } : { path, dev, filesystemId }

function devOf(disk: Disk, path: string): number {
  const dir = disk.openRoot(path)
  try {
    return disk.stat(dir, NO_NAME)?.dev ?? 0
  } finally {
    disk.close(dir)
  }
}

const KINDS = {
  add: 'delete',
  delete: 'add',
  modify: 'modify',
  metadata: 'metadata',
  replace: 'replace',
} as const

/** No identity: the inodes are those that the commit made. No link group: each old file comes back by itself. */
export const reverseChange = ({ base, path, kind, old, new: state }: Change): Change => ({
  base,
  path,
  kind: KINDS[kind],
  old: state,
  new: old,
  findings: [],
})
