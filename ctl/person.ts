import { readFileSync } from 'node:fs'

/** What a program is started with so that it has the rights of the person at the terminal. */
export interface PersonRights {
  uid?: number
  gid?: number
  env: NodeJS.ProcessEnv
}

/**
 * For programs that a person names, and that can start others: pagers and editors. Under sudo they run as whoever typed
 * it: that person may be allowed no more of root than this one command. Root itself, and everybody else, stays who they are.
 */
export function personRights(
  env: NodeJS.ProcessEnv = process.env,
  euid = process.geteuid?.() ?? 0,
): PersonRights {
  const uid = numberOf(env.SUDO_UID)
  if (euid !== 0 || uid === null || uid === 0) return { env }
  const gid = numberOf(env.SUDO_GID) ?? NOGROUP
  return { uid, gid, env: { ...env, HOME: homeOf(uid) } }
}

/** Where sudo did not say: never root's. */
const NOGROUP = 65_534

const numberOf = (text: string | undefined): number | null =>
  /^\d{1,10}$/.test(text ?? '') ? Number(text) : null

/** What is kept in root's home cannot be read by others, and what they keep is in theirs. */
function homeOf(uid: number): string {
  const home = accounts().find((account) => account.uid === uid && account.home.startsWith('/'))?.home
  return home ?? '/'
}

/** Of this machine's own users; the first name of a number counts. */
export const userNames = (): ReadonlyMap<number, string> =>
  new Map(
    accounts()
      .reverse()
      .map(({ uid, name }) => [uid, name]),
  )

const accounts = (): { name: string; uid: number; home: string }[] =>
  readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 6)
    .map(([name = '', , id, , , home = '']) => ({ name, uid: Number(id), home }))
