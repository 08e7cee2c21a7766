import { closeSync } from 'node:fs'
import { KernelError, trySyscall } from './ffi.ts'
import { AF_UNIX, NR } from './uapi/index.ts'

const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const MSG_NOSIGNAL = 0x4000

/**
 * sd_notify(3): tells the service manager how we are. False when no manager listens. Node has no datagram sockets of
 * the unix kind, hence the system calls.
 */
export function notifyManager(
  state: string,
  address: string | undefined = process.env.NOTIFY_SOCKET,
): boolean {
  if (address === undefined || address === '') return false
  const name = Buffer.from(address.startsWith('@') ? `\0${address.slice(1)}` : address, 'utf8')
  const sockaddr = Buffer.alloc(2 + 108)
  sockaddr.writeUInt16LE(AF_UNIX, 0)
  name.copy(sockaddr, 2)
  const length = 2 + name.length + (address.startsWith('@') ? 0 : 1)
  if (name.length > 107) throw new KernelError('sendto', 36, [address])
  const message = Buffer.from(state, 'utf8')
  // SAFETY: integers only.
  const fd = trySyscall(NR.socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (fd < 0) throw new KernelError('socket', -fd, ['AF_UNIX'])
  try {
    // SAFETY: both buffers live until the call returns; the kernel only reads them.
    const sent = trySyscall(NR.sendto, fd, message, message.length, MSG_NOSIGNAL, sockaddr, length)
    if (sent < 0) throw new KernelError('sendto', -sent, [address])
    return true
  } finally {
    closeSync(fd)
  }
}
