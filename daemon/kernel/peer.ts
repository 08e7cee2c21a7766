import type { Socket } from 'node:net'
import { syscall } from './ffi.ts'
import { NR, SO_PEERCRED, SOL_SOCKET } from './uapi/index.ts'

export interface Peer {
  pid: number
  uid: number
  gid: number
}

const UCRED_BYTES = 12

/** Who connected to this end of a unix socket, as the kernel noted it then. Null for a socket of another kind. */
export function peerOf(socket: Socket): Peer | null {
  // Node has no public name for it; a handle without a descriptor is no socket of the kernel's.
  const { fd } = (socket as unknown as { _handle?: { fd?: number } | null })._handle ?? {}
  if (fd === undefined || fd < 0) return null
  const credentials = Buffer.alloc(UCRED_BYTES)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(UCRED_BYTES)
  // SAFETY: both buffers outlive the call; the kernel writes at most `length` bytes into the first. The descriptor is
  // Node's and open: this runs on the thread that would close it.
  syscall('getsockopt', NR.getsockopt, fd, SOL_SOCKET, SO_PEERCRED, credentials, length)
  const peer = {
    pid: credentials.readInt32LE(0),
    uid: credentials.readUInt32LE(4),
    gid: credentials.readUInt32LE(8),
  }
  // What is no unix socket has no process at its other end.
  return peer.pid === 0 ? null : peer
}
