import { closeSync } from 'node:fs'
import { KernelError, syscall } from './ffi.ts'
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  IFF_UP,
  ifinfomsg,
  NETLINK_ROUTE,
  NLM_F_ACK,
  NLM_F_CREATE,
  NLM_F_EXCL,
  NLM_F_REQUEST,
  NLMSG_ERROR,
  NR,
  nlmsghdr,
  RT_SCOPE_HOST,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_LOCAL,
  RTA_OIF,
  RTM_NEWLINK,
  RTM_NEWROUTE,
  RTN_LOCAL,
  RTPROT_BOOT,
  rtattr,
  rtmsg,
  SOCK_CLOEXEC,
  SOCK_RAW,
} from './uapi/index.ts'

/** The kernel gives the loopback interface index 1 in every network namespace. */
const LOOPBACK = 1

/** Brings loopback up in the calling thread's network namespace: 127.0.0.1 and ::1 come with it. */
export function bringLoopbackUp(): void {
  const body = Buffer.alloc(ifinfomsg.size)
  body.writeInt32LE(LOOPBACK, ifinfomsg.ifi_index)
  body.writeUInt32LE(IFF_UP, ifinfomsg.ifi_flags)
  body.writeUInt32LE(IFF_UP, ifinfomsg.ifi_change)
  request('link set lo up', RTM_NEWLINK, 0, body)
}

/**
 * Makes every address of a family local: a connection to anywhere arrives at a socket of this namespace, whose local
 * address is where the agent wanted to go.
 */
export function makeEverythingLocal(family: 4 | 6): void {
  const body = Buffer.alloc(rtmsg.size)
  body.writeUInt8(family === 4 ? AF_INET : AF_INET6, rtmsg.rtm_family)
  body.writeUInt8(RT_TABLE_LOCAL, rtmsg.rtm_table)
  body.writeUInt8(RTPROT_BOOT, rtmsg.rtm_protocol)
  body.writeUInt8(family === 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE, rtmsg.rtm_scope)
  body.writeUInt8(RTN_LOCAL, rtmsg.rtm_type)
  const device = Buffer.alloc(rtattr.size + 4)
  device.writeUInt16LE(device.length, rtattr.rta_len)
  device.writeUInt16LE(RTA_OIF, rtattr.rta_type)
  device.writeUInt32LE(LOOPBACK, rtattr.size)
  const where = family === 4 ? '0.0.0.0/0' : '::/0'
  request(
    `route add local ${where} dev lo`,
    RTM_NEWROUTE,
    NLM_F_CREATE | NLM_F_EXCL,
    Buffer.concat([body, device]),
  )
}

/** One request, one acknowledgement. The error carries what was asked, in the words of ip(8). */
function request(what: string, type: number, flags: number, body: Buffer): void {
  const message = Buffer.concat([Buffer.alloc(nlmsghdr.size), body])
  message.writeUInt32LE(message.length, nlmsghdr.nlmsg_len)
  message.writeUInt16LE(type, nlmsghdr.nlmsg_type)
  message.writeUInt16LE(NLM_F_REQUEST | NLM_F_ACK | flags, nlmsghdr.nlmsg_flags)
  message.writeUInt32LE(1, nlmsghdr.nlmsg_seq)
  // SAFETY: integers only.
  const fd = syscall('socket', NR.socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)
  try {
    // SAFETY: the kernel reads message.length bytes of the array during the call; no address means the kernel itself.
    syscall('sendto', NR.sendto, fd, message, message.length, 0, null, 0)
    const answer = Buffer.alloc(4096)
    // SAFETY: the kernel writes at most answer.length bytes; rtnetlink has answered by the time sendto returned.
    const length = syscall('recvfrom', NR.recvfrom, fd, answer, answer.length, 0, null, null)
    if (length < nlmsghdr.size + 4 || answer.readUInt16LE(nlmsghdr.nlmsg_type) !== NLMSG_ERROR)
      throw new KernelError('rtnetlink', 74, [what])
    const error = answer.readInt32LE(nlmsghdr.size)
    if (error !== 0) throw new KernelError('rtnetlink', -error, [what])
  } finally {
    closeSync(fd)
  }
}
