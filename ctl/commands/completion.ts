import { PuzzledError } from '../../daemon/lib/errors.ts'
import { completionScript, SHELLS } from '../completion/script.ts'
import type { VerbRun } from '../verb.ts'
import { VERBS } from '../verbs.ts'

export const run: VerbRun = async (context, [asked = '']) => {
  const shell = SHELLS.find((name) => name === asked)
  if (shell === undefined)
    throw new PuzzledError('usage', `There is no completion for "${asked}"`, {
      hint: `Known: ${SHELLS.join(', ')}`,
    })
  await context.print(completionScript(VERBS, shell))
  return 0
}
