import { trySyscall } from './ffi.ts'
import { fstatfs } from './file-data.ts'
import { FS_IOC_GETFSUUID } from './uapi/quota.ts'
import { NR } from './uapi/syscalls.ts'

/** `struct fsuuid2`: the length, and as many bytes. */
const LENGTH = 0
const UUID = 1
const UUID_MOST = 16

/**
 * What f_fsid is made of on these: the superblock's UUID, and on btrfs the subvolume, too. Elsewhere (xfs, f2fs) it is the
 * device number, which is given to the next filesystem as soon as this one is unmounted.
 */
const LASTING_FSID: ReadonlySet<string> = new Set(['ext4', 'btrfs'])

/**
 * Which filesystem a descriptor is on, the same after a reboot and under every device number; undefined where the kernel
 * does not tell. A copy of an image is the same filesystem by this.
 */
export function filesystemId(fd: number): string | undefined {
  const { type, fsid } = fstatfs(fd)
  const id = LASTING_FSID.has(type) ? fsid : uuidOf(fd)
  return id === undefined || /^0*$/.test(id) ? undefined : `${type}:${id}`
}

/** Since Linux 6.9, for filesystems that have set one: xfs and overlay keep it on disk, tmpfs has a new one for each mount. */
function uuidOf(fd: number): string | undefined {
  const buffer = Buffer.alloc(UUID + UUID_MOST)
  // SAFETY: struct fsuuid2 is 17 bytes, which the number of the call says as well; the buffer lives here.
  if (trySyscall(NR.ioctl, fd, FS_IOC_GETFSUUID, buffer) !== 0) return undefined
  return buffer.toString('hex', UUID, UUID + Math.min(buffer[LENGTH] ?? 0, UUID_MOST))
}
