import { PuzzledError } from '../../daemon/lib/errors.ts'
import { completionScript, SHELLS } from '../completion/script.ts'
import type { Verb, VerbRun } from '../verb.ts'

/** The verbs are handed in: they load this. */
export const completing =
  (verbs: readonly Verb[]): VerbRun =>
  async (context, [asked = '']) => {
    const shell = SHELLS.find((name) => name === asked)
    if (shell === undefined)
      throw new PuzzledError('usage', `There is no completion for "${asked}"`, {
        hint: `Known: ${SHELLS.join(', ')}`,
      })
    await context.print(completionScript(verbs, shell))
    return 0
  }
