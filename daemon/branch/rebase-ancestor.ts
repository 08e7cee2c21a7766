import { hash } from 'node:crypto'
import type { Change, NodeState } from '../contract/changeset.ts'
import type { Dir, Disk } from '../lib/disk.ts'
import { errnoOf } from '../lib/errors.ts'
import type { SourceFile } from './commit-context.ts'
import { KeptSources } from './commit-sources.ts'
import { changesIfKnown } from './journal/changes.ts'
import { type ReadJournal, stateOf } from './journal/reader.ts'
import { readTraces } from './recover.ts'
import { openAreas } from './staging-area.ts'

/** What a path held when a branch was forked. */
export interface Ancestor {
  commit: string
  state: NodeState
  bytes: Buffer
}

export interface AncestorWanted {
  change: Change
  /** The fork, or when this branch itself landed the path. */
  sinceNs: bigint
}

/** More is not merged by lines. */
export const MERGE_LIMIT = 4 << 20

/** The kernel's clock for files goes in ticks, and so lags behind by up to one. */
const TICK_NS = 10_000_000n
const NS_PER_MS = 1_000_000n

/**
 * Finds the content of the fork among what commits took out of the base and kept for a revert. It is proved, not
 * guessed: the commit's sealed record names the inode that it replaced with a change time from before the fork, so the
 * inode had not changed since; and the kept bytes have the digest that the record names. `agentEndedNs` says until when
 * the branch's agent could look at the base: one that saw the version behind the commit may have begun from that one.
 */
export function findAncestors(
  disk: Disk,
  journalPath: string,
  bases: readonly string[],
  wanted: readonly AncestorWanted[],
  agentEndedNs: bigint | null,
): Map<Change, Ancestor | string> {
  const found = new Map<Change, Ancestor | string>()
  const byPath = new Map(wanted.map((each) => [fullPath(bases[each.change.base] ?? '', each.change), each]))
  const journal = disk.openRoot(journalPath)
  try {
    for (const { commit, journal: read } of readTraces(disk, journal)) {
      if (read?.kind !== 'read' || stateOf(read) !== 'done') continue
      for (const taken of changesIfKnown(disk, journal, commit)) {
        const each = byPath.get(fullPath(read.begin.roots[taken.base]?.path ?? '', taken))
        if (each === undefined || !isOfTheFork(taken, each.sinceNs)) continue
        found.set(each.change, keptVersion(disk, journal, read, taken, agentEndedNs))
      }
    }
    return found
  } finally {
    disk.close(journal)
  }
}

const fullPath = (base: string, { path }: Change): string => {
  const root = Buffer.from(base).toString('latin1')
  return `${root === '/' ? '' : root}/${Buffer.from(path).toString('latin1')}`
}

const isOfTheFork = ({ old, identity }: Change, sinceNs: bigint): boolean =>
  old?.type === 'file' && identity !== undefined && identity.ctimeNs + TICK_NS < sinceNs

function keptVersion(
  disk: Disk,
  journal: Dir,
  read: ReadJournal,
  taken: Change,
  agentEndedNs: bigint | null,
): Ancestor | string {
  const { commit, at, areas, roots } = read.begin
  if (agentEndedNs === null || agentEndedNs > BigInt(Date.parse(at)) * NS_PER_MS)
    return `the agent may have begun from what commit ${commit} made of it`
  if (taken.old === null || taken.old.size > MERGE_LIMIT) return 'it is too large to be merged by lines'
  try {
    const open = openAreas(disk, journal, areas, commit, 'open')
    const bases = roots.map(({ path }) => path)
    const kept = new KeptSources(disk, read.operations, open, bases)
    try {
      const bytes = readExactly(disk, kept.find(taken, taken.old), taken.old)
      return bytes === null ? GONE : { commit, state: taken.old, bytes }
    } finally {
      kept.close()
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return GONE
    throw error
  }
}

/** The content that a state names, or null where it is another one (by now). Releases the source. */
export function readExactly(disk: Disk, source: SourceFile | null, state: NodeState): Buffer | null {
  if (source === null) return null
  try {
    const stat = disk.stat(source.dir, source.name)
    if (stat?.kind !== 'file' || stat.size !== state.size) return null
    const bytes = disk.readFile(source.dir, source.name)
    return hash('sha256', bytes, 'hex') === state.sha256 ? bytes : null
  } finally {
    source.release()
  }
}

const GONE = 'the version of the fork is not kept any more'
