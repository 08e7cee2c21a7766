import { KernelError, syscall, trySyscall } from './ffi.ts'
import * as uapi from './uapi/quota.ts'
import { NR } from './uapi/syscalls.ts'

/**
 * Project quota: a directory tree carries a project id that new inodes inherit, and the filesystem limits the bytes and
 * inodes of the project. XFS and ext4 take different commands; `quotactl_fd` needs no block device name.
 */

export interface ProjectLimits {
  /** 0 is no limit. */
  bytes: number
  inodes: number
}

export interface ProjectUsage extends ProjectLimits {
  usedBytes: number
  usedInodes: number
}

/** Whether the filesystem of `fd` enforces project quota, and why not when it does not. */
export function projectQuota(fd: number, filesystem: string): { enforced: boolean; detail: string } {
  try {
    return filesystem === 'xfs' ? xfsState(fd) : genericState(fd)
  } catch (error) {
    if (error instanceof KernelError) return { enforced: false, detail: error.message }
    throw error
  }
}

function xfsState(fd: number): { enforced: boolean; detail: string } {
  const state = Buffer.alloc(uapi.fs_quota_statv.size)
  state.writeUInt8(uapi.FS_QSTATV_VERSION1, uapi.fs_quota_statv.qs_version)
  quotactlFd(fd, uapi.Q_XGETQSTATV, 0, state)
  const flags = state.readUInt16LE(uapi.fs_quota_statv.qs_flags)
  const enforced = (flags & uapi.FS_QUOTA_PDQ_ENFD) !== 0
  return { enforced, detail: enforced ? 'mounted with prjquota' : 'mounted without prjquota' }
}

function genericState(fd: number): { enforced: boolean; detail: string } {
  const info = Buffer.alloc(64)
  quotactlFd(fd, uapi.Q_GETINFO, 0, info)
  return { enforced: true, detail: 'project quota is on' }
}

/** Marks an empty directory: everything made below it belongs to the project. */
export function setProject(directory: number, project: number): void {
  const attributes = Buffer.alloc(uapi.fsxattr.size)
  // SAFETY: struct fsxattr is filled by the kernel and lives here.
  syscall('ioctl FS_IOC_FSGETXATTR', NR.ioctl, directory, uapi.FS_IOC_FSGETXATTR, attributes)
  const flags = (attributes.readUInt32LE(uapi.fsxattr.fsx_xflags) | uapi.FS_XFLAG_PROJINHERIT) >>> 0
  attributes.writeUInt32LE(flags, uapi.fsxattr.fsx_xflags)
  attributes.writeUInt32LE(project, uapi.fsxattr.fsx_projid)
  // SAFETY: the same structure, only read.
  syscall('ioctl FS_IOC_FSSETXATTR', NR.ioctl, directory, uapi.FS_IOC_FSSETXATTR, attributes)
}

/** The project id of an inode and whether new entries inherit it. */
export function getProject(fd: number): { project: number; inherit: boolean } {
  const attributes = Buffer.alloc(uapi.fsxattr.size)
  // SAFETY: struct fsxattr is filled by the kernel and lives here.
  syscall('ioctl FS_IOC_FSGETXATTR', NR.ioctl, fd, uapi.FS_IOC_FSGETXATTR, attributes)
  return {
    project: attributes.readUInt32LE(uapi.fsxattr.fsx_projid),
    inherit: (attributes.readUInt32LE(uapi.fsxattr.fsx_xflags) & uapi.FS_XFLAG_PROJINHERIT) !== 0,
  }
}

/** The project that new entries of a directory get; undefined where it is none, or the filesystem has no projects. */
export function inheritedProject(directory: number): number | undefined {
  const attributes = Buffer.alloc(uapi.fsxattr.size)
  // SAFETY: struct fsxattr is filled by the kernel and lives here.
  if (trySyscall(NR.ioctl, directory, uapi.FS_IOC_FSGETXATTR, attributes) !== 0) return undefined
  const inherits = (attributes.readUInt32LE(uapi.fsxattr.fsx_xflags) & uapi.FS_XFLAG_PROJINHERIT) !== 0
  const project = attributes.readUInt32LE(uapi.fsxattr.fsx_projid)
  return inherits && project !== 0 ? project : undefined
}

/** `fd` is any open file of the filesystem. */
export function setProjectLimits(
  fd: number,
  filesystem: string,
  project: number,
  limits: ProjectLimits,
): void {
  if (filesystem === 'xfs') {
    const quota = xfsQuota(project)
    const mask = uapi.FS_DQ_BHARD | uapi.FS_DQ_IHARD
    quota.writeUInt16LE(mask, uapi.fs_disk_quota.d_fieldmask)
    quota.writeBigUInt64LE(BigInt(Math.ceil(limits.bytes / 512)), uapi.fs_disk_quota.d_blk_hardlimit)
    quota.writeBigUInt64LE(BigInt(limits.inodes), uapi.fs_disk_quota.d_ino_hardlimit)
    quotactlFd(fd, uapi.Q_XSETQLIM, project, quota)
    return
  }
  const quota = Buffer.alloc(uapi.if_dqblk.size)
  quota.writeBigUInt64LE(BigInt(Math.ceil(limits.bytes / 1024)), uapi.if_dqblk.dqb_bhardlimit)
  quota.writeBigUInt64LE(BigInt(limits.inodes), uapi.if_dqblk.dqb_ihardlimit)
  quota.writeUInt32LE(uapi.QIF_LIMITS, uapi.if_dqblk.dqb_valid)
  quotactlFd(fd, uapi.Q_SETQUOTA, project, quota)
}

/** What a project uses now. A project that never held an inode uses nothing. */
export function projectUsage(fd: number, filesystem: string, project: number): ProjectUsage {
  if (filesystem === 'xfs') {
    const quota = xfsQuota(project)
    if (!quotactlFd(fd, uapi.Q_XGETQUOTA, project, quota, true)) return NOTHING
    const word = (at: number): number => Number(quota.readBigUInt64LE(at))
    return {
      bytes: word(uapi.fs_disk_quota.d_blk_hardlimit) * 512,
      inodes: word(uapi.fs_disk_quota.d_ino_hardlimit),
      usedBytes: word(uapi.fs_disk_quota.d_bcount) * 512,
      usedInodes: word(uapi.fs_disk_quota.d_icount),
    }
  }
  const quota = Buffer.alloc(uapi.if_dqblk.size)
  if (!quotactlFd(fd, uapi.Q_GETQUOTA, project, quota, true)) return NOTHING
  const word = (at: number): number => Number(quota.readBigUInt64LE(at))
  return {
    bytes: word(uapi.if_dqblk.dqb_bhardlimit) * 1024,
    inodes: word(uapi.if_dqblk.dqb_ihardlimit),
    usedBytes: word(uapi.if_dqblk.dqb_curspace),
    usedInodes: word(uapi.if_dqblk.dqb_curinodes),
  }
}

const NOTHING: ProjectUsage = { bytes: 0, inodes: 0, usedBytes: 0, usedInodes: 0 }

function xfsQuota(project: number): Buffer {
  const quota = Buffer.alloc(uapi.fs_disk_quota.size)
  quota.writeInt8(uapi.FS_DQUOT_VERSION, uapi.fs_disk_quota.d_version)
  quota.writeInt8(uapi.FS_PROJ_QUOTA, uapi.fs_disk_quota.d_flags)
  quota.writeUInt32LE(project, uapi.fs_disk_quota.d_id)
  return quota
}

/** False only for ENOENT where that is allowed. */
function quotactlFd(fd: number, command: number, id: number, data: Buffer, mayLack = false): boolean {
  // QCMD() of the header: the command above, the quota type in the low byte; an unsigned int to the kernel.
  const word = command * 256 + uapi.PRJQUOTA
  // SAFETY: `data` is the structure that the command names, at its full size, and lives in the caller.
  const result = trySyscall(NR.quotactl_fd ?? 443, fd, word, id, data)
  if (result === 0) return true
  if (mayLack && result === -2) return false
  throw new KernelError('quotactl_fd', -result, [fd, `0x${word.toString(16)}`, id])
}
