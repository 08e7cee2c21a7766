import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { SpawnOp, SpawnRequest, SpawnResult } from '../contract/spawn.ts'
import { packageRoot } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type Birth, type Layout, layOut, layOutBirth, readOutcome } from './clone-layout.ts'
import { errnoName } from './errno.ts'
import { addressOf, ffi, KernelError } from './ffi.ts'
import { type ProcessEnd, pidfdSendSignal, waitPidfd } from './pidfd.ts'

interface Trampoline {
  readonly spawn: {
    async(plan: bigint, cloneArgs: bigint, done: (error: unknown, pid: number | bigint) => void): void
  }
  readonly open: (plan: bigint, how: number) => void
}

/**
 * From the moment in which a child has the uid of its user, that user can stop it (SIGSTOP), and one of the few threads for
 * files waits for it to execute.
 */
const PATIENCE_MILLIS = 60_000

/** As in native/spawn.c. */
const GATE = { open: 1, refused: 2 } as const

let trampoline: Trampoline | undefined

/** The folder with the prebuilt binaries of this architecture. */
export const nativeFile = (name: string): string =>
  join(packageRoot(), 'daemon', 'native', 'prebuilt', process.arch, name)

function trampolineFunctions(): Trampoline {
  if (trampoline !== undefined) return trampoline
  try {
    const library = ffi().load(nativeFile('spawn.so'))
    trampoline = {
      spawn: library.func('long puzzled_spawn(int64_t plan, int64_t args)') as unknown as Trampoline['spawn'],
      open: library.func('void puzzled_open(int64_t plan, int how)') as Trampoline['open'],
    }
    return trampoline
  } catch (cause) {
    throw new PuzzledError('library-missing', `Cannot load ${nativeFile('spawn.so')}`, {
      cause,
      hint: `puzzled is built for x64 and arm64 with glibc; this is ${process.arch}`,
    })
  }
}

/**
 * Starts a program in new namespaces by walking `request.ops` in the child. Resolves when the program has been executed
 * (or a call was not as expected: then the child is reaped and nothing is left). A failure of clone3 itself throws.
 *
 * Facts that a plan must respect, because the child shares Node's memory until it executes:
 * - PR_SET_DUMPABLE, and a change of uid or gid, mark *this process* as not dumpable too, and that stays.
 * - A change of credentials clears PR_SET_PDEATHSIG: set it afterwards. It fires when the daemon's thread that cloned
 *   ends; that thread belongs to libuv's pool and lives as long as the process.
 * - Linux 6.18 kills what is born (`cgroupFd`) in a cgroup that was ever written to `cgroup.kill`: make a new one.
 * - Signal dispositions are default and the mask is empty from the first entry on.
 */
export async function spawn(request: SpawnRequest): Promise<SpawnResult> {
  const birth = layOutBirth(request, addressOf)
  const child = new Child(birth)
  let list: readonly SpawnOp[]
  let layout: Layout
  try {
    list = typeof request.ops === 'function' ? request.ops() : request.ops
    layout = layOut(list, birth, addressOf)
  } catch (error) {
    await child.refuse()
    throw error
  }
  const pid = await child.follow(layout, request.patienceMillis ?? PATIENCE_MILLIS)
  if (pid < 0) throw new KernelError('clone3', -pid, [request.namespaces.join('|')])
  const { returned, at, result, pidfd } = readOutcome(birth, layout.ops)
  const execEntered = at === list.length - 1
  if (!returned && execEntered) return { ok: true, pid, pidfd }
  const end = reap(pidfd, returned)
  const op = list[Math.max(at, 0)]
  if (op === undefined || (returned && at < 0))
    throw new PuzzledError('internal', `The trampoline stopped at entry ${at}`)
  return { ok: false, index: Math.max(at, 0), op, ...failure(result, returned, end) }
}

/** A child that is being made. It waits until it is given its list, or none. */
class Child {
  readonly #birth: Birth
  readonly #over: Promise<number>
  /** What the child reads; here so that it stays where it is until the child has executed. */
  readonly #held: Layout[] = []

  constructor(birth: Birth) {
    this.#birth = birth
    this.#over = new Promise((resolve, reject) => {
      // SAFETY: runs on a thread of libuv's pool, which sleeps until the child has executed or is gone. Nothing else
      // touches the plan once it is open. The closure holds `this` and with it every array that is known by address only.
      trampolineFunctions().spawn.async(addressOf(birth.plan), addressOf(birth.cloneArgs), (error, pid) => {
        this.#held.length = 0
        if (error !== null && error !== undefined) reject(error)
        else resolve(Number(pid))
      })
    })
  }

  /** Its pid when it has executed or is about to be gone, or the negative errno of what kept it from being made. */
  async follow(layout: Layout, patienceMillis: number): Promise<number> {
    this.#held.push(layout)
    this.#open(GATE.open)
    const timer = setTimeout(() => this.#kill(), patienceMillis)
    try {
      return await this.#over
    } finally {
      clearTimeout(timer)
    }
  }

  #kill(): void {
    const { pidfd } = readOutcome(this.#birth, null)
    if (pidfd >= 0) pidfdSendSignal(pidfd, constants.signals.SIGKILL)
  }

  /** Ends it before its first entry; nothing is left of it. */
  async refuse(): Promise<void> {
    this.#open(GATE.refused)
    const pid = await this.#over
    if (pid > 0) reap(readOutcome(this.#birth, null).pidfd, true)
  }

  #open(how: number): void {
    // SAFETY: stores a word in the plan, which `#birth` holds, and wakes who waits for it; the list is written by now.
    trampolineFunctions().open(addressOf(this.#birth.plan), how)
  }
}

/** A child that neither returned nor reached its last entry was killed; one that returned is about to be gone. */
function reap(pidfd: number, returned: boolean): ProcessEnd | undefined {
  if (!returned) pidfdSendSignal(pidfd, constants.signals.SIGKILL)
  const end = waitPidfd(pidfd, { block: true })
  closeSync(pidfd)
  return end
}

function failure(result: number, returned: boolean, end: ProcessEnd | undefined) {
  if (!returned) return { result: 0, errnoName: end?.signal ?? 'SIGKILL' }
  return { result, errnoName: result < 0 ? errnoName(-result) : 'success' }
}
