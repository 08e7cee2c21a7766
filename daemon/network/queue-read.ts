import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { QueuedRequestSummary } from '../contract/changeset.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { readStart } from './body-spool.ts'
import { summaryOf } from './queue.ts'
import { type QueuedRequest, readLog } from './queue-record.ts'
import { type QueuedRequestView, READ_BYTES, viewOf } from './queue-view.ts'

/** What waits in the queue of a branch, without opening it: another process may be its owner. */
export const readPending = async (directory: string): Promise<readonly QueuedRequestSummary[]> =>
  (await readRequests(directory))
    .filter(({ state }) => state === 'queued' || state === 'approved')
    .map((one) => summaryOf(one))

/** All requests of the queue of a branch as a person reads them, without opening it. */
export async function readViews(
  directory: string,
  placeholders: readonly string[],
): Promise<readonly QueuedRequestView[]> {
  const views: QueuedRequestView[] = []
  // One after the other: together they may be larger than memory.
  for (const one of await readRequests(directory))
    views.push(viewOf(one, await bodyStart(directory, one), placeholders))
  return views
}

async function readRequests(directory: string): Promise<readonly QueuedRequest[]> {
  try {
    const path = join(directory, 'queue', 'queue.log')
    const { requests, damage } = readLog(await readFile(path))
    if (damage.length > 0)
      throw new PuzzledError('record-damaged', `"${path}" is damaged: ${damage.slice(0, 3).join(', ')}`)
    return [...requests.values()]
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}

async function bodyStart(directory: string, { request: { body } }: QueuedRequest): Promise<Buffer> {
  if (body.file === undefined) return Buffer.from(body.inline ?? '', 'base64').subarray(0, READ_BYTES)
  try {
    return await readStart(join(directory, 'queue', body.file), Math.min(READ_BYTES, body.size))
  } catch (error) {
    // It went with a request that was dropped.
    if (errnoOf(error) === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
