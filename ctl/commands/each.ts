import { jsonText } from '../json.ts'
import { errorJson, errorStatus, errorText } from '../render/error.ts'
import type { VerbContext } from '../verb.ts'

/** One of several that cannot be dealt with does not keep the others: what is wrong with it is said, and it has a status. */
export async function statusOf(context: VerbContext, act: () => Promise<number>): Promise<number> {
  try {
    return await act()
  } catch (error) {
    if (context.json) await context.print(jsonText(errorJson(error)))
    else await context.printError(errorText(error, context.paintErrors), 4)
    return errorStatus(error)
  }
}

/** Of several, in the order in which they were named: the first that is not 0. */
export const firstFailure = (statuses: readonly number[]): number =>
  statuses.find((status) => status !== 0) ?? 0
