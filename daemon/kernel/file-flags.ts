import { KernelError, trySyscall } from './ffi.ts'
import { FS_APPEND_FL, FS_IMMUTABLE_FL, FS_IOC_GETFLAGS, FS_IOC_SETFLAGS } from './uapi/quota.ts'
import { NR } from './uapi/syscalls.ts'

const STUBBORN = FS_IMMUTABLE_FL | FS_APPEND_FL
const NOT_KNOWN = [-25, -95]

/** Takes `chattr +i` and `+a` away; false where neither was set or the filesystem has no such flags. */
export function clearImmutable(fd: number): boolean {
  const flags = Buffer.alloc(8)
  // SAFETY: the ioctl writes four bytes (its number says eight) into `flags`, which lives here.
  const got = trySyscall(NR.ioctl, fd, FS_IOC_GETFLAGS, flags)
  if (NOT_KNOWN.includes(got)) return false
  if (got < 0) throw new KernelError('ioctl FS_IOC_GETFLAGS', -got, [fd])
  const before = flags.readUInt32LE(0)
  if ((before & STUBBORN) === 0) return false
  flags.writeUInt32LE((before & ~STUBBORN) >>> 0, 0)
  // SAFETY: reads the same four bytes.
  const set = trySyscall(NR.ioctl, fd, FS_IOC_SETFLAGS, flags)
  if (set < 0) throw new KernelError('ioctl FS_IOC_SETFLAGS', -set, [fd])
  return true
}
