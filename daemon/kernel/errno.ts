// pure
import { constants } from 'node:os'

const NAMES = new Map<number, string>()
for (const [name, value] of Object.entries(constants.errno)) if (!NAMES.has(value)) NAMES.set(value, name)

/** `ENOENT` for 2; the number itself for one that libuv does not know. */
export const errnoName = (errno: number): string => NAMES.get(errno) ?? EXTRA[errno] ?? `errno ${errno}`

/** errno values that Node's table lacks; the same on x86-64 and aarch64. */
const EXTRA: Readonly<Record<number, string>> = {
  117: 'EUCLEAN',
  122: 'EDQUOT',
  123: 'ENOMEDIUM',
  126: 'ENOKEY',
  524: 'ENOTSUPP',
  132: 'ERFKILL',
  133: 'EHWPOISON',
}
export const errnoNumber = (name: string): number => {
  const known = (constants.errno as Record<string, number>)[name]
  if (known !== undefined) return known
  for (const [value, extra] of Object.entries(EXTRA)) if (extra === name) return Number(value)
  return 0
}
