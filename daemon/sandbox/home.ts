// pure
import { posix } from 'node:path'
import { isBelow } from './places.ts'

/** What an agent's home is where its requester has none. */
export const NO_HOME = '/home/agent'

/** No file of a person lies in the kernel's own filesystems. */
const KERNEL = ['/dev', '/proc', '/sys']
/** Where accounts of services have theirs; a private home in its place would hide what the agent needs from there. */
const SYSTEM = [
  ...['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc', '/boot', '/var/run'],
  ...['/usr/bin', '/usr/sbin', '/usr/lib', '/usr/libexec', '/usr/share', '/usr/games'],
]

const lies = (path: string, places: readonly string[]): boolean =>
  places.some((place) => path === place || isBelow(path, place))

/** The home of an account as paths are compared: `/home/u/` is `/home/u`. What cannot be one is `/`, which says the same. */
export function accountHome(text: string): string {
  if (!posix.isAbsolute(text)) return '/'
  const path = posix.normalize(text).replace(/(?<=.)\/+$/, '')
  return lies(path, KERNEL) ? '/' : path
}

/** The directory that an agent believes to be its home, of a requester with this one. */
export const agentHome = (home: string): string =>
  home === '/' || home === '/usr' || home === '/var' || lies(home, SYSTEM) ? NO_HOME : home
