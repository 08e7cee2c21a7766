import type { NetTestAnswer } from '../../../daemon/contract/engine.ts'
import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import { flagOption, type VerbContext, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [target = '', method = '', url = ''], options) => {
  const branch = flagOption(options, 'branch') ? undefined : await ofProfile(target, method, url)
  const { whose, answer } = branch ?? (await ofBranch(context, target, method, url))
  if (context.json) await context.print(jsonText(answer))
  else {
    const { green, red, yellow } = context.paint
    const paint = answer.class === 'deny' ? red : answer.class === 'queue' ? yellow : green
    const help = answer.help === undefined ? '' : `  would help: ${visibleLine(answer.help)}\n`
    const open = answer.open.map((one) => `  not decided by the rules: ${visibleLine(one)}\n`)
    await context.print(
      `${paint(answer.class)} by rule "${visibleLine(answer.rule)}" of ${whose}: ${visibleLine(answer.reason)}\n${help}${open.join('')}`,
    )
  }
  return answer.class === 'deny' ? exitStatusOf('denied') : 0
}

interface Tested {
  whose: string
  answer: NetTestAnswer
}

/** Profiles are readable by everybody: no engine is opened. Undefined where no profile has this name. */
async function ofProfile(name: string, method: string, url: string): Promise<Tested | undefined> {
  const { testNetwork } = await import('../../../daemon/profile-tools.ts')
  try {
    return { whose: `profile ${visibleLine(name)}`, answer: await testNetwork(name, method, url) }
  } catch (error) {
    if (error instanceof PuzzledError && error.data?.unknown === true) return undefined
    throw error
  }
}

async function ofBranch(context: VerbContext, id: string, method: string, url: string): Promise<Tested> {
  const engine = await context.engine()
  return { whose: `branch ${visibleLine(id)}`, answer: await engine.netTest(id, method, url) }
}
