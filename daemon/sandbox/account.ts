import { readFileSync, statSync } from 'node:fs'
import { accountHome } from './home.ts'

export interface Account {
  readonly name: string
  readonly home: string
  readonly shell: string
}

/** The line of /etc/passwd for a uid. Read directly: a directory service must not be able to stall the daemon. */
export function accountOf(uid: number): Account | undefined {
  for (const line of passwdLines()) {
    const [name, , id, , , home, shell] = line.split(':')
    if (id !== undefined && id !== '' && Number(id) === uid && name !== undefined)
      return { name, home: accountHome(home ?? ''), shell: shell || '/bin/sh' }
  }
  return undefined
}

/** The ids of a system user, when the host has it. */
export function idsOf(name: string): { uid: number; gid: number } | undefined {
  const fields = passwdLines()
    .map((line) => line.split(':'))
    .find((entry) => entry[0] === name)
  return fields === undefined ? undefined : { uid: Number(fields[2]), gid: Number(fields[3]) }
}

let known: { version: string; lines: string[] } | undefined

/** Read again only when the file has changed: a start asks several times. */
function passwdLines(): string[] {
  const { ino, mtimeMs, size } = statSync('/etc/passwd')
  const version = `${ino} ${mtimeMs} ${size}`
  if (known?.version !== version) known = { version, lines: readFileSync('/etc/passwd', 'utf8').split('\n') }
  return known.lines
}

/**
 * The host's file with one more line, for an agent whose uid has none: many programs refuse to work for a user without a
 * name. Null when the uid is known.
 */
export function passwdWith(uid: number, gid: number, home: string): Uint8Array | null {
  if (accountOf(uid) !== undefined) return null
  const text = readFileSync('/etc/passwd', 'utf8')
  const separator = text.endsWith('\n') || text === '' ? '' : '\n'
  return Buffer.from(`${text}${separator}agent:x:${uid}:${gid}:puzzled agent:${home}:/bin/sh\n`)
}
