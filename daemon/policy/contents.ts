import type { BranchRecord } from '../contract/branch.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import { errnoOf } from '../lib/errors.ts'
import { type ContentScan, MAX_SCAN_BYTES, MAX_SCAN_TOTAL } from './content-scan.ts'
import type { ScanItem } from './gate-messages.ts'

/**
 * Reads at most `limit` bytes from the beginning of a file: `new` as the branch has it, `old` as the base has it.
 * The caller opens by descriptor, follows no link, and answers null for an old content that is not there.
 */
export type ContentReader = (
  record: BranchRecord,
  change: Change,
  which: 'new' | 'old',
  limit: number,
) => Promise<Uint8Array | null>

type Read = (change: Change, which: 'new' | 'old', limit: number) => Promise<Uint8Array | null>
type Scan = (items: readonly ScanItem[]) => Promise<readonly { change: number; scan: ContentScan }[]>

/** What one batch may be: small enough for the time limit of a worker, large enough to keep it busy. */
const BATCH_FILES = 64
const BATCH_BYTES = 4 * 1024 * 1024

const unread = (reason: string, failed: boolean): ContentScan => ({
  examined: false,
  reason,
  ...(failed ? { failed } : {}),
  binary: false,
  native: false,
  findings: [],
})

/** Files whose content is new. A file whose bytes did not change has nothing to examine. */
const hasNewContent = ({ kind, old, new: now }: Change): boolean =>
  kind !== 'delete' && now?.type === 'file' && (old?.sha256 === undefined || old.sha256 !== now.sha256)

/** Examines every new content, within limits; what was not examined is said per file. */
export async function scanContents(
  { changes }: Changeset,
  read: Read,
  scan: Scan,
): Promise<Map<number, ContentScan>> {
  const scans = new Map<number, ContentScan>()
  let total = 0
  let batch: number[] = []
  let batchBytes = 0
  const flush = async (): Promise<void> => {
    const items = await Promise.all(batch.map((at) => readItem(changes, at, read, scans)))
    batch = []
    batchBytes = 0
    for (const { change, scan: result } of await scan(items.filter((item) => item !== null)))
      scans.set(change, result)
  }
  for (const [at, change] of changes.entries()) {
    if (!hasNewContent(change)) {
      if (change.kind === 'metadata') scans.set(at, METADATA)
      continue
    }
    const size = Math.min(change.new?.size ?? 0, MAX_SCAN_BYTES)
    if (total + size > MAX_SCAN_TOTAL) {
      scans.set(at, unread(`beyond the first ${MAX_SCAN_TOTAL} bytes of the changeset`, false))
      continue
    }
    total += size
    batch.push(at)
    batchBytes += size
    if (batch.length >= BATCH_FILES || batchBytes >= BATCH_BYTES) await flush()
  }
  if (batch.length > 0) await flush()
  return scans
}

/** The content is what the base has: it was there before the agent came. */
const METADATA: ContentScan = { examined: true, binary: false, native: false, findings: [] }

async function readItem(
  changes: readonly Change[],
  at: number,
  read: Read,
  scans: Map<number, ContentScan>,
): Promise<ScanItem | null> {
  const change = changes[at]
  if (change === undefined) return null
  try {
    const content = await read(change, 'new', MAX_SCAN_BYTES + 1)
    if (content === null) {
      scans.set(at, unread('no regular file is there', true))
      return null
    }
    const old = change.old?.type === 'file' ? await read(change, 'old', MAX_SCAN_BYTES) : null
    const complete = content.byteLength <= MAX_SCAN_BYTES
    return { change: at, path: change.path, content, complete, ...(old === null ? {} : { old }) }
  } catch (error) {
    scans.set(at, unread(errnoOf(error) ?? 'it cannot be read', true))
    return null
  }
}
