import type { Server } from 'node:net'
import { constants } from 'node:os'
import { addressOf, KernelError, trySyscall } from './ffi.ts'
import { NR, SO_PASSRIGHTS, SOL_SOCKET } from './uapi/index.ts'

/**
 * Whoever sends a descriptor to this server, which listens already, is answered with EPERM (Linux 6.16; false before).
 * Nothing here would keep one, but to drop it is to close it, on the thread that serves everybody: a TCP socket that
 * lingers over bytes that its other end never reads holds that thread for as long as its sender said.
 */
export function refuseDescriptors(server: Server): boolean {
  // Node has no public name for it; connections take the setting over from the socket that listens.
  const { fd } = (server as unknown as { _handle?: { fd?: number } | null })._handle ?? {}
  if (fd === undefined || fd < 0) return false
  const no = Buffer.alloc(4)
  // SAFETY: the kernel reads 4 bytes of an array of 4 during the call. The descriptor is Node's and open: this runs on
  // the thread that would close it.
  const result = trySyscall(NR.setsockopt, fd, SOL_SOCKET, SO_PASSRIGHTS, addressOf(no), no.length)
  // A socket of another family carries none.
  if (result === -constants.errno.ENOPROTOOPT || result === -constants.errno.EOPNOTSUPP) return false
  if (result < 0) throw new KernelError('setsockopt', -result, [fd, 'SO_PASSRIGHTS'])
  return true
}
