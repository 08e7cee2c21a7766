import { KernelError, trySyscall } from './ffi.ts'
import { S } from './file-numbers.ts'
import { NR } from './uapi/syscalls.ts'

export interface DirEntry {
  /** Exactly the bytes that the filesystem holds. */
  name: Buffer
  /** The type bits of a mode (`S.IF*`); 0 where the filesystem does not say. */
  type: number
}

const buffer = Buffer.alloc(65_536)

/**
 * Everything in a directory but `.` and `..`, in the filesystem's order. Reads from the descriptor's position on: a
 * descriptor is listed once.
 */
export function listDirectory(fd: number): DirEntry[] {
  const entries: DirEntry[] = []
  while (readInto(fd, entries));
  return entries
}

/** The next entries, some hundred at a time; none at the end. For directories that may be larger than memory. */
export function nextEntries(fd: number): DirEntry[] {
  const entries: DirEntry[] = []
  while (readInto(fd, entries) && entries.length === 0);
  return entries
}

/** False at the end of the directory. */
function readInto(fd: number, entries: DirEntry[]): boolean {
  // SAFETY: writes at most the given length into the module's buffer; names are copied out before the next call.
  const length = trySyscall(NR.getdents64, fd, buffer, buffer.length)
  if (length < 0) throw new KernelError('getdents64', -length, [fd])
  if (length === 0) return false
  decode(length, entries)
  return true
}

/** struct linux_dirent64: ino 0..8, off 8..16, reclen 16..18, type 18, name from 19 to a NUL. */
function decode(length: number, entries: DirEntry[]): void {
  for (let at = 0; at < length; ) {
    const next = at + buffer.readUInt16LE(at + 16)
    const start = at + 19
    const end = buffer.indexOf(0, start)
    const dots =
      buffer[start] === 0x2e && (end === start + 1 || (end === start + 2 && buffer[start + 1] === 0x2e))
    if (!dots)
      entries.push({
        name: Buffer.from(buffer.subarray(start, end)),
        type: ((buffer[at + 18] ?? 0) << 12) & S.IFMT,
      })
    at = next
  }
}
