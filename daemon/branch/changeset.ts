// pure
import { Buffer } from 'node:buffer'
import {
  type Change,
  type Changeset,
  type ChangesetTotals,
  isEcho,
  type QueuedRequestSummary,
} from '../contract/changeset.ts'
import { GrowingTree, inclusionProof, leafHash, provesInclusion } from '../lib/merkle.ts'
import { Writer } from './changeset-codec.ts'
import { canonicalOf } from './packed-change.ts'

/**
 * A changeset is a Merkle tree: the first leaf names the version and the bases, then one leaf per change in canonical
 * order, then one per queued request in order of replay. The root is the digest that reviews and approvals are bound to.
 */

const TAG = { head: 0, change: 1, request: 2 } as const

export function headLeaf(bases: readonly string[]): Buffer {
  const writer = new Writer()
  writer.u8(TAG.head)
  writer.u32(1)
  writer.u32(bases.length)
  for (const base of bases) writer.text(base)
  return leafHash(writer.take())
}

const CHANGE_TAG = Buffer.from([TAG.change])

/** `canonical` is the form that `canonicalOf` gives. */
export const changeLeaf = (canonical: Uint8Array): Buffer => leafHash(Buffer.concat([CHANGE_TAG, canonical]))

function requestLeaf(request: QueuedRequestSummary): Buffer {
  const writer = new Writer()
  writer.u8(TAG.request)
  for (const text of [request.id, request.method, request.host, request.path, request.class])
    writer.text(text)
  writer.u64(request.bytes)
  writer.hex(request.sha256)
  return leafHash(writer.take())
}

type Content = Pick<Changeset, 'bases' | 'changes' | 'requests'>

function leavesOf({ bases, changes, requests }: Content): Buffer[] {
  return [
    headLeaf(bases),
    ...changes.map((change) => changeLeaf(canonicalOf(change))),
    ...requests.map(requestLeaf),
  ]
}

/** Hex of the Merkle root over what the changeset says; the `digest` field is not looked at. */
export function digestOf({ bases, changes, requests }: Content): string {
  const tree = new GrowingTree()
  tree.append(headLeaf(bases))
  for (const change of changes) tree.append(changeLeaf(canonicalOf(change)))
  for (const request of requests) tree.append(requestLeaf(request))
  return tree.root().toString('hex')
}

/** Totals and digest of changes that are in canonical order. */
export function sealChangeset(content: Content): Changeset {
  return { version: 1, ...content, totals: totalsOf(content.changes), digest: digestOf(content) }
}

/** The same files with these requests, and so with another digest. */
export const withRequests = (changeset: Changeset, requests: readonly QueuedRequestSummary[]): Changeset =>
  sealChangeset({ ...changeset, requests })

/** By base, then bytewise by path. */
export const compareChanges = (a: Change, b: Change): number =>
  a.base - b.base || Buffer.compare(a.path, b.path)

export function totalsOf(changes: readonly Change[]): ChangesetTotals {
  const totals = { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 }
  for (const change of changes) addToTotals(totals, change)
  return totals
}

/** What lands: bytes are those of new and modified content. */
export function addToTotals(totals: ChangesetTotals, change: Change): void {
  if (isEcho(change)) return
  totals.files++
  if (change.kind === 'add') totals.additions++
  else if (change.kind === 'delete') totals.deletions++
  else totals.modifications++
  if (change.kind !== 'metadata' && change.new?.type === 'file') totals.bytes += change.new.size
}

export interface EntryProof {
  index: number
  size: number
  /** Hex, from the leaf's sibling up. */
  path: readonly string[]
}

/** Proof that one change belongs to the digest, without the others. */
export function proveChange(changeset: Changeset, change: Change): EntryProof {
  const index = changeset.changes.indexOf(change) + 1
  if (index === 0) throw new RangeError('The change is not in the changeset')
  const leaves = leavesOf(changeset)
  return {
    index,
    size: leaves.length,
    path: inclusionProof(leaves, index).map((hash) => hash.toString('hex')),
  }
}

export const verifyChange = (digest: string, change: Change, proof: EntryProof): boolean =>
  provesInclusion(
    changeLeaf(canonicalOf(change)),
    proof.index,
    proof.size,
    proof.path.map((hash) => Buffer.from(hash, 'hex')),
    Buffer.from(digest, 'hex'),
  )
