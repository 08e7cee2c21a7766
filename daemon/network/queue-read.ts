import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { QueuedRequestSummary } from '../contract/changeset.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { summaryOf } from './queue.ts'
import { readLog } from './queue-record.ts'

/** What waits in the queue of a branch, without opening it: another process may be its owner. */
export async function readPending(directory: string): Promise<readonly QueuedRequestSummary[]> {
  try {
    const path = join(directory, 'queue', 'queue.log')
    const { requests, damage } = readLog(await readFile(path))
    if (damage.length > 0)
      throw new PuzzledError('record-damaged', `"${path}" is damaged: ${damage.slice(0, 3).join(', ')}`)
    return [...requests.values()]
      .filter(({ state }) => state === 'queued' || state === 'approved')
      .map((one) => summaryOf(one))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}
