import { closeSync } from 'node:fs'
import { syscall } from '../../daemon/kernel/ffi.ts'
import {
  AF_NETLINK,
  NETLINK_NETFILTER,
  NLM_F_DUMP,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  NR,
  nlmsghdr,
  SOCK_CLOEXEC,
  SOCK_RAW,
} from '../../daemon/kernel/uapi/index.ts'

/** linux/netfilter/nfnetlink.h and nf_tables.h. */
const NFT_MSG_GETTABLE = (10 << 8) | 1
const NFTA_TABLE_NAME = 1
/** `struct nfgenmsg`: family, version, resource; a family of 0 asks for all of them. */
const NFGENMSG = 4
const ATTRIBUTE = 4
/** `NFPROTO_*` as nft(8) spells them. */
const FAMILIES = new Map([
  [1, 'inet'],
  [2, 'ip'],
  [3, 'arp'],
  [5, 'netdev'],
  [7, 'bridge'],
  [10, 'ip6'],
])

const aligned = (length: number): number => (length + 3) & ~3

/**
 * Tables of this network namespace, as nft(8) lists them. Asked of the kernel directly: this is done around every test, and
 * starting a program costs more than many of them. A kernel without nftables has none.
 */
export function tablesOfNamespace(): string[] {
  const ask = Buffer.alloc(nlmsghdr.size + NFGENMSG)
  ask.writeUInt32LE(ask.length, nlmsghdr.nlmsg_len)
  ask.writeUInt16LE(NFT_MSG_GETTABLE, nlmsghdr.nlmsg_type)
  ask.writeUInt16LE(NLM_F_REQUEST | NLM_F_DUMP, nlmsghdr.nlmsg_flags)
  // SAFETY: integers only.
  const fd = syscall('socket', NR.socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER)
  try {
    // SAFETY: the kernel reads ask.length bytes of the array during the call; no address means the kernel itself.
    syscall('sendto', NR.sendto, fd, ask, ask.length, 0, null, 0)
    const found: string[] = []
    const answer = Buffer.alloc(32768)
    for (;;) {
      // SAFETY: the kernel writes at most answer.length bytes; a dump always ends with NLMSG_DONE or an error.
      const length = syscall('recvfrom', NR.recvfrom, fd, answer, answer.length, 0, null, null)
      for (const { type, body } of messages(answer.subarray(0, length))) {
        if (type === NLMSG_DONE || type === NLMSG_ERROR) return found
        const family = body.readUInt8(0)
        found.push(`table ${FAMILIES.get(family) ?? family} ${nameOf(body)}`)
      }
    }
  } finally {
    closeSync(fd)
  }
}

function* messages(answer: Buffer): Generator<{ type: number; body: Buffer }> {
  for (let at = 0; at + nlmsghdr.size <= answer.length; ) {
    const length = answer.readUInt32LE(at + nlmsghdr.nlmsg_len)
    const type = answer.readUInt16LE(at + nlmsghdr.nlmsg_type)
    yield { type, body: answer.subarray(at + nlmsghdr.size, at + length) }
    at += aligned(length)
  }
}

function nameOf(body: Buffer): string {
  for (let at = NFGENMSG; at + ATTRIBUTE <= body.length; ) {
    const length = body.readUInt16LE(at)
    if (body.readUInt16LE(at + 2) === NFTA_TABLE_NAME)
      return body.toString('utf8', at + ATTRIBUTE, at + length - 1)
    at += aligned(length)
  }
  return ''
}
