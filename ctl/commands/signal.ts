import { jsonText } from '../json.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, [id = '', name = 'TERM']) => {
  const engine = await context.engine()
  const { terminated, survivors } = await engine.signal(id, name)
  const text = `${terminated} processes ended, ${survivors} are left.\n`
  await context.print(context.json ? jsonText({ terminated, survivors }) : text)
  return 0
}
