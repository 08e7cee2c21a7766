import { constants } from 'node:os'
import { cstring, syscall, trySyscall } from './ffi.ts'
import { fanotify_event_metadata as metadata, NR, O_CLOEXEC, O_RDONLY } from './uapi/index.ts'

/** fanotify(7). Never put a permission mark on a whole filesystem or mount from a process that also uses it. */

/** A notification group; `flags` are FAN_* of fanotify_init, and the descriptor is close-on-exec. */
export function fanotifyInit(flags: number): number {
  // SAFETY: integers only.
  return syscall('fanotify_init', NR.fanotify_init, flags, O_RDONLY | O_CLOEXEC)
}

/** Marks the object `path` (or, when it is empty, `directory` itself). */
export function fanotifyMark(
  group: number,
  flags: number,
  mask: number,
  directory: number,
  path: string | Uint8Array,
): void {
  const bytes = path.length === 0 ? null : cstring(path)
  // SAFETY: `bytes` ends in NUL and lives until the call returns; a null path means the descriptor itself.
  syscall('fanotify_mark', NR.fanotify_mark, group, flags, mask, directory, bytes)
}

export interface FanotifyEvent {
  readonly mask: number
  readonly pid: number
  /** The opened object, to be closed by the caller; -1 in groups that report file handles. */
  readonly descriptor: number
}

/** The events that wait; empty when there are none (the group must be FAN_NONBLOCK). */
export function readFanotify(group: number): FanotifyEvent[] {
  const buffer = Buffer.alloc(16384)
  // SAFETY: the kernel writes at most the given length into `buffer`, which lives here.
  const length = trySyscall(NR.read, group, buffer, buffer.length)
  if (length === -constants.errno.EAGAIN) return []
  if (length < 0) syscall('read', NR.read, group, buffer, buffer.length)
  const events: FanotifyEvent[] = []
  for (let at = 0; at + metadata.size <= length; at += Math.max(buffer.readUInt32LE(at), metadata.size))
    events.push({
      mask: Number(buffer.readBigUInt64LE(at + metadata.mask)),
      pid: buffer.readInt32LE(at + metadata.pid),
      descriptor: buffer.readInt32LE(at + metadata.fd),
    })
  return events
}
