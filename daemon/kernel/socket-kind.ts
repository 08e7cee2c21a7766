import { syscall } from './ffi.ts'
import { NR, SO_ACCEPTCONN, SO_TYPE, SOCK_STREAM, SOL_SOCKET } from './uapi/index.ts'

/** Whether bytes can be read from this socket and written to it one after the other: no datagrams, nobody to accept. */
export const isByteStream = (fd: number): boolean =>
  numberOption(fd, SO_TYPE) === SOCK_STREAM && numberOption(fd, SO_ACCEPTCONN) === 0

function numberOption(fd: number, option: number): number {
  const [value, length] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32LE(value.length)
  // SAFETY: both buffers outlive the call; the kernel writes at most `length` bytes into the first.
  syscall('getsockopt', NR.getsockopt, fd, SOL_SOCKET, option, value, length)
  return value.readInt32LE(0)
}
