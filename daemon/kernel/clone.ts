import { closeSync } from 'node:fs'
import { join } from 'node:path'
import type { SpawnRequest, SpawnResult } from '../contract/spawn.ts'
import { packageRoot } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type Layout, layOut, readOutcome } from './clone-layout.ts'
import { errnoName } from './errno.ts'
import { addressOf, ffi, KernelError } from './ffi.ts'
import { pidfdSendSignal, waitPidfd } from './pidfd.ts'

type SpawnFunction = {
  async(plan: bigint, cloneArgs: bigint, done: (error: unknown, pid: number | bigint) => void): void
}

let trampoline: SpawnFunction | undefined

/** The folder with the prebuilt binaries of this architecture. */
export const nativeFile = (name: string): string =>
  join(packageRoot(), 'daemon', 'native', 'prebuilt', process.arch, name)

function spawnFunction(): SpawnFunction {
  try {
    trampoline ??= ffi()
      .load(nativeFile('spawn.so'))
      .func('long puzzled_spawn(int64_t plan, int64_t args)') as unknown as SpawnFunction
  } catch (cause) {
    throw new PuzzledError('library-missing', `Cannot load ${nativeFile('spawn.so')}`, {
      cause,
      hint: `puzzled is built for x64 and arm64 with glibc; this is ${process.arch}`,
    })
  }
  return trampoline
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
  const layout = layOut(request, addressOf)
  const pid = await runTrampoline(layout)
  if (pid < 0) throw new KernelError('clone3', -pid, [request.namespaces.join('|')])
  const { returned, at, result, pidfd } = readOutcome(layout)
  const execEntered = at === request.ops.length - 1
  if (!returned && execEntered) return { ok: true, pid, pidfd }
  return { ok: false, index: at, ...failure(request, at, result, returned, pidfd) }
}

function runTrampoline(layout: Layout): Promise<number> {
  return new Promise((resolve, reject) => {
    // SAFETY: runs on a thread of libuv's pool, which sleeps until the child has executed or is gone; nothing else
    // touches the arrays meanwhile. The closure holds `layout` and with it every array that is known by address only.
    spawnFunction().async(addressOf(layout.plan), addressOf(layout.cloneArgs), (error, pid) => {
      if (error !== null && error !== undefined) reject(error)
      else resolve(layout.keep.length > 0 ? Number(pid) : 0)
    })
  })
}

function failure(request: SpawnRequest, at: number, result: number, returned: boolean, pidfd: number) {
  // A child that neither returned nor reached its last entry was killed; one that returned is about to be gone.
  if (!returned) pidfdSendSignal(pidfd, 9)
  const end = waitPidfd(pidfd, { block: true })
  closeSync(pidfd)
  const op = request.ops[at]
  if (op === undefined) throw new PuzzledError('internal', `The trampoline stopped at entry ${at}`)
  if (!returned) return { op, result: 0, errnoName: end?.signal ?? 'SIGKILL' }
  return { op, result, errnoName: result < 0 ? errnoName(-result) : 'success' }
}
