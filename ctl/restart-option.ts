// pure
import type { RestartPolicy } from '../daemon/contract/branch.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'

/** As the daemon takes it. */
const MOST = 10_000

/** `never`, `on-failure`, `always`, the last two with `:N` for at most N starts after the first. */
export function parseRestart(text: string): RestartPolicy | null {
  if (text === 'never') return null
  const [, when, times] = /^(on-failure|always)(?::([0-9]+))?$/.exec(text) ?? []
  if ((when === 'on-failure' || when === 'always') && isTimes(times))
    return { when, times: times === undefined ? null : Number(times) }
  throw new PuzzledError('usage', `--restart ${text} is not known`, {
    hint: `Use never, on-failure, always, or with a number of times from 1 to ${MOST}: on-failure:5.`,
  })
}

const isTimes = (text: string | undefined): boolean =>
  text === undefined || (Number(text) >= 1 && Number(text) <= MOST)
