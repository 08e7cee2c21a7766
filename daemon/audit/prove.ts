import { PuzzledError } from '../lib/errors.ts'
import {
  consistencyRanges,
  GrowingTree,
  inclusionRanges,
  leafHash,
  provesConsistency,
  provesInclusion,
  RangeRoots,
} from '../lib/merkle.ts'
import { decodeRecord } from './record.ts'
import { linesOf, listSegments } from './segments.ts'

/** Everything that somebody needs who has only a trusted tree head: the record, its place, and the path to the root. */
export interface InclusionProof {
  seq: number
  size: number
  record: string
  path: string[]
  root: string
}

export interface ConsistencyProof {
  from: { size: number; root: string }
  to: { size: number; root: string }
  path: string[]
}

const hex = (hashes: readonly Buffer[]): string[] => hashes.map((hash) => hash.toString('hex'))
const bytes = (hashes: readonly string[]): Buffer[] => hashes.map((hash) => Buffer.from(hash, 'hex'))

/**
 * Proves that record `seq` is in the log of the first `size` records (default: all). The log is read twice, once to count:
 * memory grows with the logarithm of it.
 */
export async function proveInclusion(directory: string, seq: number, size?: number): Promise<InclusionProof> {
  const all = await countLines(directory)
  const upTo = Math.min(size ?? all, all)
  if (seq >= upTo) throw new PuzzledError('usage', `There is no record ${seq} in the first ${upTo}`)
  const ranges = inclusionRanges(seq, upTo)
  const [roots, tree] = [new RangeRoots(ranges), new GrowingTree()]
  let record = ''
  for await (const lines of firstLines(directory, upTo))
    for (const line of lines) {
      if (tree.size === seq) record = line.toString('utf8')
      const leaf = leafHash(line)
      roots.append(leaf)
      tree.append(leaf)
    }
  return { seq, size: upTo, record, path: hex(roots.of(ranges)), root: tree.root().toString('hex') }
}

export const checkInclusion = (proof: InclusionProof): boolean =>
  provesInclusion(
    leafHash(Buffer.from(proof.record, 'utf8')),
    proof.seq,
    proof.size,
    bytes(proof.path),
    Buffer.from(proof.root, 'hex'),
  )

/** Proves that the log of `from` records is the beginning of the log as it is now. */
export async function proveConsistency(directory: string, from: number): Promise<ConsistencyProof> {
  const size = await countLines(directory)
  if (!Number.isInteger(from) || from < 1 || from > size)
    throw new PuzzledError('usage', `${from} is not a size between 1 and ${size}`)
  const ranges = consistencyRanges(from, size)
  const [roots, tree] = [new RangeRoots(ranges), new GrowingTree()]
  let old = tree.root()
  for await (const lines of firstLines(directory, size))
    for (const line of lines) {
      const leaf = leafHash(line)
      roots.append(leaf)
      tree.append(leaf)
      if (tree.size === from) old = tree.root()
    }
  return {
    from: { size: from, root: old.toString('hex') },
    to: { size, root: tree.root().toString('hex') },
    path: hex(roots.of(ranges)),
  }
}

export function checkConsistency(proof: ConsistencyProof): boolean {
  const head = ({ size, root }: { size: number; root: string }) => ({ size, root: Buffer.from(root, 'hex') })
  return provesConsistency(head(proof.from), head(proof.to), bytes(proof.path))
}

async function countLines(directory: string): Promise<number> {
  let count = 0
  for await (const lines of wholeLines(directory)) {
    if (count === 0 && lines[0] !== undefined) refusePruned(lines[0])
    count += lines.length
  }
  return count
}

/** What is written meanwhile is behind these. */
async function* firstLines(directory: string, count: number): AsyncGenerator<Buffer[]> {
  let left = count
  for await (const lines of wholeLines(directory)) {
    yield lines.slice(0, left)
    left -= lines.length
    if (left <= 0) return
  }
}

async function* wholeLines(directory: string): AsyncGenerator<Buffer[]> {
  for (const segment of await listSegments(directory))
    for await (const lines of linesOf(directory, segment))
      yield lines.filter(({ whole }) => whole).map(({ bytes: raw }) => raw)
}

/** Proofs need every leaf; a log whose beginning was archived can prove only beside its archived segments. */
function refusePruned(first: Buffer): void {
  const seq = decodeRecord(first)?.seq
  if (seq === 0) return
  throw new PuzzledError(
    'audit-failed',
    `The log begins at record ${seq ?? '?'}; proofs need it from the beginning`,
    {
      hint: 'Copy the archived segments back beside the others.',
    },
  )
}
