import { readFileSync, statSync } from 'node:fs'
import { type KernelRecord, readKernelRecord } from './audit/kernel-record.ts'
import type { DenialLayer } from './contract/denial.ts'
import type { PuzzledEvent } from './contract/events.ts'
import type { Profile } from './contract/profile.ts'
import { type AuditMessage, AuditStream } from './kernel/audit-stream.ts'
import { DenialLog } from './network/denial-log.ts'
import { type Architecture, refusalReasons } from './sandbox/seccomp-rules.ts'

/** What can be found out about a process by its number, as long as it has that number. */
export interface ProcessLook {
  /** Its session of the kernel's audit system. */
  sessionOf(pid: number): number | null
  /** Which PID namespace it lives in. */
  worldOf(pid: number): number | null
  /** Milliseconds since 1970, at the latest. */
  startedAt(pid: number): number | null
}

type Source = Pick<AuditStream, 'listen' | 'drain' | 'close'>

export interface KernelDenialParts {
  readonly publish: (event: PuzzledEvent) => void
  readonly count: (layer: DenialLayer) => void
  readonly open?: () => Source
  readonly look?: ProcessLook
}

interface Branch {
  readonly id: string
  readonly seccomp: Profile['seccomp']
  readonly log: DenialLog
  readonly sessions: Set<number>
  readonly creators: Set<number>
  readonly domains: Set<string>
  world: number | null
}

/** Between a refusal by a Landlock domain and the record that says whose it is there is none or little. */
const MOST_PENDING = 256
const LOST_PAUSE_MILLIS = 60_000

/**
 * What the kernel refused to agents by itself, heard from its audit system. A record is a branch's when one of three
 * things says so, none of which an agent can choose: the session number that the start gave to its processes, the
 * Landlock domain that its first process made, or a process that is in its PID namespace and was there before the
 * record was made. Whatever cannot be told is nobody's: a branch is never blamed for another one.
 */
export class KernelDenials {
  readonly #parts: KernelDenialParts
  readonly #look: ProcessLook
  readonly #branches = new Map<string, Branch>()
  #pending: KernelRecord[] = []
  #starting = 0
  #source: Source | null = null
  #silent = false
  #lostAt = Number.NEGATIVE_INFINITY

  constructor(parts: KernelDenialParts) {
    this.#parts = parts
    this.#look = parts.look ?? procfs
  }

  /** Around each start: what the process does before `begin` can name it is kept for it. */
  async during<Result>(start: () => Promise<Result>): Promise<Result> {
    this.#starting++
    this.#open()
    try {
      return await start()
    } finally {
      this.#starting--
      this.#closeIdle()
    }
  }

  /** The first process of a branch, or of a command that joined it; alive until its `end`. */
  begin(id: string, seccomp: Profile['seccomp'], pid: number): void {
    const known = this.#branches.get(id)
    const branch = known ?? {
      ...{ id, seccomp, log: new DenialLog(id, this.#parts.publish, this.#parts.count), world: null },
      ...{ sessions: new Set<number>(), creators: new Set<number>(), domains: new Set<string>() },
    }
    this.#branches.set(id, branch)
    const session = this.#look.sessionOf(pid)
    // Our own: the kernel gave it none of its own.
    if (session !== null && session !== this.#look.sessionOf(process.pid)) branch.sessions.add(session)
    branch.creators.add(pid)
    if (known === undefined) branch.world = this.#look.worldOf(pid)
    this.#retry()
  }

  /** That process is gone and its number may become another's. Of a branch: everything that is known about it. */
  end(id: string, pid?: number): void {
    const branch = this.#branches.get(id)
    if (branch === undefined) return
    if (this.#source !== null) this.#take(this.#source.drain(), false)
    if (pid === undefined) this.#branches.delete(id)
    else branch.creators.delete(pid)
    this.#closeIdle()
  }

  close(): void {
    this.#source?.close()
    this.#source = null
  }

  #open(): void {
    if (this.#source !== null || this.#silent) return
    try {
      this.#source = (this.#parts.open ?? AuditStream.open)()
      this.#source.listen((messages, lost) => this.#take(messages, lost))
    } catch {
      // Not on this machine; `puzzlectl doctor` says why.
      this.#silent = true
    }
  }

  #closeIdle(): void {
    if (this.#starting === 0 && this.#branches.size === 0) this.close()
  }

  #take(messages: readonly AuditMessage[], lost: boolean): void {
    if (lost) this.#tellLost()
    for (const { type, text } of messages) {
      const record = readKernelRecord(type, text)
      if (record !== null && !this.#settle(record)) this.#keep(record)
    }
  }

  #tellLost(): void {
    const now = performance.now()
    if (now - this.#lostAt < LOST_PAUSE_MILLIS) return
    this.#lostAt = now
    const message = 'The kernel told more than could be read: some denials of this minute are not listed'
    this.#parts.publish({ kind: 'warning', branch: '', time: new Date().toISOString(), message })
  }

  #keep(record: KernelRecord): void {
    this.#pending.push(record)
    if (this.#pending.length > MOST_PENDING) this.#pending.shift()
  }

  #retry(): void {
    const pending = this.#pending
    this.#pending = []
    for (const record of pending) if (!this.#settle(record)) this.#keep(record)
  }

  /** False: not known yet whose it is. */
  #settle(record: KernelRecord): boolean {
    if (record.kind === 'domain') return this.#learnDomain(record.domain, record.pid)
    if (record.kind === 'landlock') {
      const branch = this.#find(({ domains }) => domains.has(record.domain))
      if (branch !== undefined) tellLandlock(branch, record)
      return branch !== undefined
    }
    const { session = null } = record.kind === 'seccomp' ? record : {}
    const branch =
      (session === null ? undefined : this.#find(({ sessions }) => sessions.has(session))) ??
      this.#byWorld(record.pid, record.at)
    if (branch === undefined) return this.#starting === 0
    if (record.kind === 'seccomp') tellSeccomp(branch, record)
    else tellModule(branch, record)
    return true
  }

  #learnDomain(domain: string, pid: number): boolean {
    const branch = this.#find(({ creators }) => creators.has(pid))
    if (branch === undefined) return this.#starting === 0
    branch.domains.add(domain)
    this.#retry()
    return true
  }

  /** A number that became another's since the record was made belongs to a process that is younger than the record. */
  #byWorld(pid: number, at: number): Branch | undefined {
    const world = this.#look.worldOf(pid)
    const started = this.#look.startedAt(pid)
    if (world === null || started === null || started > at) return undefined
    return this.#find((branch) => branch.world === world)
  }

  #find(is: (branch: Branch) => boolean): Branch | undefined {
    for (const branch of this.#branches.values()) if (is(branch)) return branch
    return undefined
  }
}

type Of<Kind> = Extract<KernelRecord, { kind: Kind }>

function tellSeccomp({ log, seccomp }: Branch, { call, program }: Of<'seccomp'>): void {
  const refused = refusalReasons(seccomp, call, process.arch as Architecture)
  // A filter that the agent put on itself refuses what ours does not.
  if (refused.why === '') return
  const message = `The system call fails with EPERM: ${refused.why}`
  log.add('seccomp', `${refused.call} by ${program}`, `seccomp.${refused.call}`, message)
}

const LANDLOCK_HELP: Readonly<Record<string, string>> = {
  fs: 'a mount or a Landlock path in the profile (puzzlectl explain shows what is granted)',
  net: 'a port in the network section of the profile',
}

function tellLandlock({ log }: Branch, { blockers, object }: Of<'landlock'>): void {
  const acts = blockers.map((name) => name.replace(/^[a-z]+\./, '').replaceAll('_', ' ')).join(', ')
  const [kind = ''] = (blockers[0] ?? '').split('.')
  log.add('landlock', object, `landlock.${blockers[0]}`, `Not granted here: ${acts}`, LANDLOCK_HELP[kind])
}

function tellModule({ log }: Branch, { module, act, object, program }: Of<'lsm'>): void {
  const message = `The security policy of this host (${module}) forbids it: ${act}`
  log.add('lsm', `${object} by ${program}`, module, message)
}

const HERTZ = 100

const procfs: ProcessLook = {
  sessionOf: (pid) => {
    const session = Number(orNull(() => readFileSync(`/proc/${pid}/sessionid`, 'utf8')) ?? Number.NaN)
    return Number.isInteger(session) && session !== 2 ** 32 - 1 ? session : null
  },
  worldOf: (pid) => orNull(() => statSync(`/proc/${pid}/ns/pid`).ino),
  startedAt: (pid) => {
    const stat = orNull(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
    const uptime = orNull(() => Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]))
    if (stat === null || uptime === null) return null
    // The name in parentheses may hold anything; 22nd field, the second of what follows it being the third.
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    // Rounded up: in the same tick it may have been another process.
    return Number.isFinite(ticks) ? Date.now() - uptime * 1000 + ((ticks + 1) * 1000) / HERTZ : null
  },
}

/** Null for a process that is gone. */
function orNull<Result>(look: () => Result): Result | null {
  try {
    return look()
  } catch {
    return null
  }
}
