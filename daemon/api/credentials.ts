import { readFile } from 'node:fs/promises'
import { fromVariant } from '../contract/bus-values.ts'
import { type BusConnection, BusError } from '../lib/bus-connection.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'

export interface Credentials {
  uid: number
  gid: number
  groups: readonly number[]
  pid: number
  /** True for anything that runs inside a branch, and for anything of which that cannot be excluded. */
  insideBranch: boolean
}

/** Who a caller is, as the bus and the kernel say it; asked once per connection and forgotten when it goes. */
export class CallerBook {
  readonly #connection: BusConnection
  readonly #known = new Map<string, Promise<Credentials>>()
  readonly #forget: (name: string) => void

  /** `forget` is told of every connection that has gone. */
  constructor(connection: BusConnection, forget: (name: string) => void) {
    this.#connection = connection
    this.#forget = forget
  }

  async start(): Promise<void> {
    await this.#connection.callBus('AddMatch', 's', [
      "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'",
    ])
    this.#connection.onSignal((message) => {
      if (message.member !== 'NameOwnerChanged' || message.sender !== 'org.freedesktop.DBus') return
      const name = String(message.body?.[0])
      this.#known.delete(name)
      this.#forget(name)
    })
  }

  /** Everybody who has called and is still connected. */
  async known(): Promise<readonly (readonly [name: string, Credentials])[]> {
    const all = await Promise.allSettled(
      [...this.#known].map(async ([name, asked]) => [name, await asked] as const),
    )
    return all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  }

  of(name: string): Promise<Credentials> {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const asked = this.#ask(name)
    this.#known.set(name, asked)
    asked.catch(() => this.#known.delete(name))
    return asked
  }

  async #credentials(name: string): Promise<[string, unknown][]> {
    try {
      const [entries] = await this.#connection.callBus('GetConnectionCredentials', 's', [name])
      return entries as [string, unknown][]
    } catch (cause) {
      if (!(cause instanceof BusError)) throw cause
      throw new PuzzledError('access-denied', 'The caller is gone', { cause })
    }
  }

  async #ask(name: string): Promise<Credentials> {
    const entries = await this.#credentials(name)
    const facts = new Map(entries)
    const number = (key: string): number | null => {
      const value = facts.get(key)
      return value === undefined ? null : Number(fromVariant(value))
    }
    const uid = number('UnixUserID')
    const pid = number('ProcessID')
    if (uid === null || pid === null)
      throw new PuzzledError('access-denied', `The bus does not say who ${name} is`)
    const status = await processStatus(pid)
    // A process that is gone cannot be asked any more: what it was stays unknown, and unknown is refused.
    if (status === null || status.uid !== uid)
      throw new PuzzledError('access-denied', 'The calling process is gone')
    const connected = groupsAtConnect(facts.get('UnixGroupIDs'))
    // It has become a setgid program since: that group is not its user's.
    if (connected !== null && !connected.includes(status.gid))
      throw new PuzzledError('access-denied', 'The calling process has more rights than its user')
    const groups = connected ?? status.groups
    return { uid, pid, gid: status.gid, groups, insideBranch: await isInsideBranch(pid) }
  }
}

/** Those of the socket, as the kernel noted them: the process may have become a program with others since. */
function groupsAtConnect(variant: unknown): readonly number[] | null {
  const [, values] = (variant ?? []) as [unknown, [unknown]?]
  return Array.isArray(values?.[0]) ? values[0].map(Number) : null
}

async function processStatus(pid: number): Promise<{ uid: number; gid: number; groups: number[] } | null> {
  const text = await readProc(`/proc/${pid}/status`)
  if (text === null) return null
  const numbers = (key: string): number[] => {
    const line = new RegExp(`^${key}:\\s*(.*)$`, 'm').exec(text)?.[1] ?? ''
    return line
      .split(/\s+/)
      .filter((word) => word !== '')
      .map(Number)
  }
  return { uid: numbers('Uid')[1] ?? -1, gid: numbers('Gid')[1] ?? -1, groups: numbers('Groups') }
}

/** The slice of all agents, or the scope of one, anywhere in the path: nested hierarchies put something before it. */
const AGENT_CGROUP = /\/puzzle(\.slice|-[^/\n]*\.scope)(\/|$)/m

/** Agents live in cgroups of ours and always in a PID namespace of their own; either is enough to be refused. */
export async function isInsideBranch(pid: number): Promise<boolean> {
  const cgroup = await readProc(`/proc/${pid}/cgroup`)
  if (cgroup === null || AGENT_CGROUP.test(cgroup)) return true
  // Not by `ns/pid`: to read that waits for a process that executes a program, which can be made to take for ever.
  const status = await readProc(`/proc/${pid}/status`)
  return status === null || !/^NSpid:\s*\d+$/m.test(status)
}

async function readProc(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return null
    throw error
  }
}
