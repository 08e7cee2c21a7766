import type { Engine, QueuedView } from '../../../daemon/contract/engine.ts'
import { PuzzledError } from '../../../daemon/lib/errors.ts'

export async function findRequest(engine: Engine, branch: string, request: string): Promise<QueuedView> {
  const found = (await engine.queue(branch)).find((one) => one.id === request)
  if (found === undefined)
    throw new PuzzledError('request-unknown', `Branch ${branch} has no request "${request}"`, {
      hint: `puzzlectl queue ls ${branch}`,
    })
  return found
}
