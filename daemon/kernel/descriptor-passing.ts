import { constants } from 'node:os'
import { LAYOUT, message } from './descriptor-message.ts'
import { addressOf, KernelError, syscall, trySyscall } from './ffi.ts'
import { AF_UNIX, NR, SOCK_CLOEXEC, SOCK_STREAM } from './uapi/index.ts'

const MSG_DONTWAIT = 0x40
const MSG_CMSG_CLOEXEC = 0x40000000

export interface SocketPair {
  readonly ours: number
  readonly theirs: number
}

export function socketPair(): SocketPair {
  const ends = Buffer.alloc(8)
  // SAFETY: the kernel writes two ints; the buffer lives until the call returns.
  syscall('socketpair', NR.socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
  return { ours: ends.readInt32LE(0), theirs: ends.readInt32LE(4) }
}

/** The descriptor that was sent (close-on-exec here); undefined when none has come yet. */
export function receiveDescriptor(socket: number): number | undefined {
  const { bytes, pointers } = message()
  for (const { offset, to } of pointers) bytes.writeBigUInt64LE(addressOf(to), offset)
  // SAFETY: all pointers lead into `bytes`, which is alive and large enough for what the lengths say.
  const result = trySyscall(NR.recvmsg, socket, bytes, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)
  if (result === -constants.errno.EAGAIN) return undefined
  if (result < 0) throw new KernelError('recvmsg', -result, [socket])
  return result === 0 ? undefined : bytes.readInt32LE(LAYOUT.descriptor)
}
