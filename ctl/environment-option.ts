import { PuzzledError } from '../daemon/lib/errors.ts'

/** The caller's environment; the profile decides what of it passes. */
export const ownEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )

/** `NAME=value` sets, `NAME` passes the caller's value; a name that the caller does not have is a mistake. */
export function askedEnvironment(pairs: readonly string[]): Record<string, string> {
  const asked: Record<string, string> = {}
  for (const pair of pairs) {
    const cut = pair.indexOf('=')
    const name = cut < 0 ? pair : pair.slice(0, cut)
    const value = cut < 0 ? process.env[name] : pair.slice(cut + 1)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw new PuzzledError('usage', `"${name}" is not the name of a variable`)
    if (value === undefined)
      throw new PuzzledError('usage', `--env ${name}: there is no such variable here`, {
        hint: `Set it: --env ${name}=value`,
      })
    asked[name] = value
  }
  return asked
}
