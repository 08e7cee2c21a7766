import type { Selection } from '../../daemon/contract/engine.ts'
import { listOption, type OptionValues } from '../verb.ts'

/** `--only` and `--except`, or null when neither was given. */
export function selectionOf(options: OptionValues): Selection | null {
  const only = listOption(options, 'only')
  const except = listOption(options, 'except')
  return only.length === 0 && except.length === 0 ? null : { only, except }
}
