import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { Requester } from '../daemon/contract/branch.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'

/**
 * Who asks. Under sudo that is the person who typed it, not root: a path is only committed if that person could
 * have written it. Root can drop to anybody, so believing root's SUDO_UID gives nobody a right.
 */
export function requester(env: NodeJS.ProcessEnv = process.env): Requester {
  const uid = process.getuid?.() ?? 0
  const sudo = uid === 0 ? idOf('SUDO_UID', 'user', env.SUDO_UID ?? '0') : 0
  if (sudo > 0) {
    const gid = idOf('SUDO_GID', 'group', env.SUDO_GID ?? '')
    const name = env.SUDO_USER ?? String(sudo)
    return { uid: sudo, gid, groups: groupsOf(name, gid), name }
  }
  const gid = process.getgid?.() ?? 0
  return { uid, gid, groups: process.getgroups?.() ?? [gid], name: ownName(uid) }
}

/** The last number means "leave it as it is" to the kernel. */
const HIGHEST_ID = 0xfffffffe

function idOf(name: string, what: string, text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) <= HIGHEST_ID) return Number(text)
  throw new PuzzledError(
    'usage',
    `${name} is ${text === '' ? 'not set' : JSON.stringify(text)}: no ${what}`,
    {
      hint: 'sudo sets SUDO_UID and SUDO_GID. To act as root itself: env -u SUDO_UID puzzlectl …',
    },
  )
}

/** A uid without an entry in passwd is its own name. */
function ownName(uid: number): string {
  try {
    return userInfo().username
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SYSTEM_ERROR') return String(uid)
    throw error
  }
}

/** Supplementary groups of a local user; Node offers no getgrouplist(3). */
function groupsOf(name: string, gid: number): number[] {
  const groups = new Set([gid])
  for (const line of readFileSync('/etc/group', 'utf8').split('\n')) {
    const [, , id, members] = line.split(':')
    if (members?.split(',').includes(name) === true) groups.add(Number(id))
  }
  return [...groups].sort((a, b) => a - b)
}
