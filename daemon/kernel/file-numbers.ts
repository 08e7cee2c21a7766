// pure
import * as open from './uapi/open.ts'

/** The generated constants of the file calls, grouped by the argument that they belong to. */

export const O = {
  RDONLY: open.O_RDONLY,
  WRONLY: open.O_WRONLY,
  RDWR: open.O_RDWR,
  CREAT: open.O_CREAT,
  EXCL: open.O_EXCL,
  TRUNC: open.O_TRUNC,
  APPEND: open.O_APPEND,
  NONBLOCK: open.O_NONBLOCK,
  NOCTTY: open.O_NOCTTY,
  NOFOLLOW: open.O_NOFOLLOW,
  DIRECTORY: open.O_DIRECTORY,
  CLOEXEC: open.O_CLOEXEC,
  PATH: open.O_PATH,
  TMPFILE: open.O_TMPFILE,
} as const

export const RESOLVE = {
  NO_XDEV: open.RESOLVE_NO_XDEV,
  NO_MAGICLINKS: open.RESOLVE_NO_MAGICLINKS,
  NO_SYMLINKS: open.RESOLVE_NO_SYMLINKS,
  BENEATH: open.RESOLVE_BENEATH,
  IN_ROOT: open.RESOLVE_IN_ROOT,
} as const

export const AT = {
  FDCWD: open.AT_FDCWD,
  SYMLINK_NOFOLLOW: open.AT_SYMLINK_NOFOLLOW,
  REMOVEDIR: open.AT_REMOVEDIR,
  SYMLINK_FOLLOW: open.AT_SYMLINK_FOLLOW,
  NO_AUTOMOUNT: open.AT_NO_AUTOMOUNT,
  EMPTY_PATH: open.AT_EMPTY_PATH,
  EACCESS: open.AT_EACCESS,
  RECURSIVE: open.AT_RECURSIVE,
} as const

export const RENAME = {
  NOREPLACE: open.RENAME_NOREPLACE,
  EXCHANGE: open.RENAME_EXCHANGE,
  WHITEOUT: open.RENAME_WHITEOUT,
} as const

/** The type bits of a mode. */
export const S = {
  IFMT: open.S_IFMT,
  IFSOCK: open.S_IFSOCK,
  IFLNK: open.S_IFLNK,
  IFREG: open.S_IFREG,
  IFBLK: open.S_IFBLK,
  IFDIR: open.S_IFDIR,
  IFCHR: open.S_IFCHR,
  IFIFO: open.S_IFIFO,
} as const
