import type { QueueAction } from '../../../daemon/contract/engine.ts'
import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import { textOption, type VerbRun } from '../../verb.ts'

/** `drop`, `resume` and `skip` differ in one word. A replay that stopped again is not a success. */
export const acting =
  (action: QueueAction, done: string): VerbRun =>
  async (context, [id = '', request = ''], options) => {
    const engine = await context.engine()
    const result = await engine.queueAct(id, request, action, textOption(options, 'message') ?? '')
    const sent = result.sent === 0 ? '' : `; ${result.sent} request${result.sent === 1 ? '' : 's'} sent`
    const problem = result.problem === null ? '' : `; stopped: ${visibleLine(result.problem)}`
    const what = result.waits === true ? 'goes with the next commit, which is judged again' : done
    await context.print(
      context.json ? jsonText(result) : `Request ${visibleLine(request)} ${what}${sent}${problem}.\n`,
    )
    return result.problem === null ? 0 : exitStatusOf('stuck')
  }
