import { errnoName } from './errno.ts'
import { cstring, KernelError, syscall, trySyscall } from './ffi.ts'
import { AT } from './file-numbers.ts'
import { NR } from './uapi/syscalls.ts'

export interface FileCredentials {
  uid: number
  gid: number
  groups: readonly number[]
}

/**
 * Runs with another user's rights to files. The kernel checks every access of the *calling thread* with these ids, and
 * takes the file capabilities away while the id is not root's. `run` must be synchronous: what it is to see ends here.
 */
export function asFileUser<Result>(who: FileCredentials, run: () => Result): Result {
  const own = {
    uid: process.geteuid?.() ?? 0,
    gid: process.getegid?.() ?? 0,
    groups: process.getgroups?.() ?? [],
  }
  // A daemon without root is the requester already, and could not become another.
  if (own.uid !== 0) return run()
  try {
    become(who)
    return run()
  } finally {
    become(own)
  }
}

function become({ uid, gid, groups }: FileCredentials): void {
  const list = Buffer.alloc(Math.max(4, groups.length * 4))
  groups.forEach((group, index) => {
    list.writeUInt32LE(group, index * 4)
  })
  // SAFETY: the raw calls change the calling thread only (libc's would change all threads). `list` outlives the call.
  syscall('setgroups', NR.setgroups, groups.length, list)
  // SAFETY: ints. These two report no error, so the result is asked for: an impossible id (-1) changes nothing.
  trySyscall(NR.setfsgid, gid)
  trySyscall(NR.setfsuid, uid)
  // SAFETY: ints, see above.
  if (trySyscall(NR.setfsgid, -1) !== gid || trySyscall(NR.setfsuid, -1) !== uid)
    throw new KernelError('setfsuid', 1, [uid, gid])
}

/** `faccessat2` as the thread's present file user; null, or the errno's name. An empty name is the directory itself. */
export function accessError(dir: number, name: Uint8Array, mode: number): string | null {
  const flags = AT.EACCESS | AT.SYMLINK_NOFOLLOW | (name.length === 0 ? AT.EMPTY_PATH : 0)
  // SAFETY: the name is copied into a NUL-terminated buffer that outlives the call.
  const result = trySyscall(NR.faccessat2, dir, cstring(name), mode, flags)
  return result === 0 ? null : errnoName(-result)
}
