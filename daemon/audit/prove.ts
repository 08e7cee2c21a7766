import { PuzzledError } from '../lib/errors.ts'
import {
  consistencyProof,
  inclusionProof,
  leafHash,
  provesConsistency,
  provesInclusion,
  rootOf,
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

/** Proves that record `seq` is in the log of the first `size` records (default: all). */
export async function proveInclusion(directory: string, seq: number, size?: number): Promise<InclusionProof> {
  const { leaves, line } = await readLeaves(directory, seq)
  const upTo = leaves.slice(0, size ?? leaves.length)
  if (line === null || seq >= upTo.length)
    throw new PuzzledError('usage', `There is no record ${seq} in the first ${upTo.length}`)
  return {
    seq,
    size: upTo.length,
    record: line,
    path: hex(inclusionProof(upTo, seq)),
    root: rootOf(upTo).toString('hex'),
  }
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
  const { leaves } = await readLeaves(directory, -1)
  if (!Number.isInteger(from) || from < 1 || from > leaves.length)
    throw new PuzzledError('usage', `${from} is not a size between 1 and ${leaves.length}`)
  const head = (size: number): { size: number; root: string } => ({
    size,
    root: rootOf(leaves.slice(0, size)).toString('hex'),
  })
  return { from: head(from), to: head(leaves.length), path: hex(consistencyProof(leaves, from)) }
}

export function checkConsistency(proof: ConsistencyProof): boolean {
  const head = ({ size, root }: { size: number; root: string }) => ({ size, root: Buffer.from(root, 'hex') })
  return provesConsistency(head(proof.from), head(proof.to), bytes(proof.path))
}

/** Proofs need every leaf; a log whose beginning was pruned can prove only by its archived segments. */
async function readLeaves(
  directory: string,
  wanted: number,
): Promise<{ leaves: Buffer[]; line: string | null }> {
  const leaves: Buffer[] = []
  let line: string | null = null
  for (const segment of await listSegments(directory))
    for await (const lines of linesOf(directory, segment))
      for (const { bytes: raw, whole } of lines) {
        if (!whole) continue
        if (leaves.length === 0) refusePruned(raw)
        if (leaves.length === wanted) line = raw.toString('utf8')
        leaves.push(leafHash(raw))
      }
  return { leaves, line }
}

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
