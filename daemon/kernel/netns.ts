import { closeSync, openSync, writeFileSync } from 'node:fs'
import { addressOf, KernelError, syscall, trySyscall } from './ffi.ts'
import {
  AF_INET,
  AF_INET6,
  CLONE_NEWNET,
  IPPROTO_IPV6,
  IPV6_V6ONLY,
  NR,
  SO_REUSEADDR,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
  sockaddr_in,
  sockaddr_in6,
} from './uapi/index.ts'

/** `thread-self`: the namespace belongs to the calling thread, not to the process. */
const OWN = '/proc/thread-self/ns/net'

/** `T` must not be a promise: whatever runs after an `await` runs on a thread that is home again. */
type Synchronous<T> = T extends PromiseLike<unknown> ? never : T

/**
 * Runs `work` with the calling thread in the network namespace `fd` (a namespace descriptor or a pidfd) and brings the
 * thread home. Sockets that it makes stay in that namespace for good, whoever holds them.
 */
export function insideNetns<T>(fd: number, work: () => Synchronous<T>): T {
  const home = openOwnNetns()
  try {
    // SAFETY: integers only; setns changes this thread, and nothing else runs on it until the finally below.
    syscall('setns', NR.setns, fd, CLONE_NEWNET)
    try {
      return work()
    } finally {
      returnHome(home)
    }
  } finally {
    closeSync(home)
  }
}

/** A new network namespace with nothing in it; it lives as long as the descriptor, or a process in it, does. */
export function createNetns(): number {
  const home = openOwnNetns()
  try {
    // SAFETY: integers only; unshare moves this thread alone, and the finally below brings it back.
    syscall('unshare', NR.unshare, CLONE_NEWNET)
    try {
      return openOwnNetns()
    } finally {
      returnHome(home)
    }
  } finally {
    closeSync(home)
  }
}

/** To be called inside `insideNetns`: a hold on that namespace, to visit it again. */
export const openOwnNetns = (): number => openSync(OWN, 'r')

function returnHome(home: number): void {
  // SAFETY: integers only; the descriptor is held by the caller.
  const result = trySyscall(NR.setns, home, CLONE_NEWNET)
  // The thread would open the daemon's next sockets inside the agent's world. They lead nowhere, but it is no place
  // to go on from: the error must reach the top.
  if (result < 0) throw new KernelError('setns', -result, ['back to the own network namespace'])
}

export interface SocketPlace {
  readonly family: 4 | 6
  /** 4 or 16 bytes. */
  readonly address: Uint8Array
  readonly port: number
}

/** To be called inside `insideNetns`. The descriptor can be given to `net.Server.listen({fd})`. */
export function listenTcp(place: SocketPlace, options: { backlog?: number; dual?: boolean } = {}): number {
  const fd = bound(place, SOCK_STREAM, options.dual ?? false)
  try {
    // SAFETY: integers only.
    syscall('listen', NR.listen, fd, options.backlog ?? 1024)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** To be called inside `insideNetns`. The descriptor can be given to `dgram.Socket.bind({fd})`. */
export const bindUdp = (place: SocketPlace): number => bound(place, SOCK_DGRAM, false)

function bound(place: SocketPlace, type: number, dual: boolean): number {
  const domain = place.family === 4 ? AF_INET : AF_INET6
  // SAFETY: integers only.
  const fd = syscall('socket', NR.socket, domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
  return bindTo(fd, socketName(place), () => {
    setInt(fd, SOL_SOCKET, SO_REUSEADDR, 1)
    if (place.family === 6) setInt(fd, IPPROTO_IPV6, IPV6_V6ONLY, dual ? 0 : 1)
  })
}

/** Takes the socket over: it is bound, or closed when that fails. */
export function bindTo(fd: number, name: Buffer, prepare: () => void = () => undefined): number {
  try {
    prepare()
    // SAFETY: the kernel copies `name.length` bytes, which the array has, during the call.
    syscall('bind', NR.bind, fd, name, name.length)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function setInt(fd: number, level: number, option: number, value: number): void {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  // SAFETY: the kernel reads 4 bytes of an array of 4 during the call.
  syscall('setsockopt', NR.setsockopt, fd, level, option, addressOf(bytes), bytes.length)
}

/** The struct that bind expects. Ports are big-endian, the family is in host order (both ABIs are little-endian). */
export function socketName(place: SocketPlace): Buffer {
  const v4 = place.family === 4
  const name = Buffer.alloc(v4 ? sockaddr_in.size : sockaddr_in6.size)
  name.writeUInt16LE(v4 ? AF_INET : AF_INET6, 0)
  name.writeUInt16BE(place.port, v4 ? sockaddr_in.sin_port : sockaddr_in6.sin6_port)
  name.set(place.address, v4 ? sockaddr_in.sin_addr : sockaddr_in6.sin6_addr)
  return name
}

/** To be called inside `insideNetns`: `/proc/sys/net` shows the namespace of the thread that opens it. */
export function setNetSysctl(name: string, value: string): void {
  writeFileSync(`/proc/sys/net/${name}`, value)
}
