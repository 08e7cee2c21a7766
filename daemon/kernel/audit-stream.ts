import { closeSync, openSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { node } from 'koffi'
import { ffi, KernelError, syscall, trySyscall } from './ffi.ts'
import { bindTo, insideNetns } from './netns.ts'
import {
  AF_NETLINK,
  AUDIT_GET,
  AUDIT_NLGRP_READLOG,
  audit_status,
  MSG_DONTWAIT,
  NETLINK_AUDIT,
  NLM_F_REQUEST,
  NLMSG_ERROR,
  NR,
  nlmsghdr,
  SOCK_CLOEXEC,
  SOCK_RAW,
  sockaddr_nl,
} from './uapi/index.ts'

/** One record of the kernel: its type, and `audit(SECONDS.MILLIS:SERIAL): …`. What processes chose in it is quoted or in hex. */
export interface AuditMessage {
  readonly type: number
  readonly text: string
}

/** Records are at most 8970 bytes; longer ones the kernel has cut. */
const LARGEST = 9216
/** Per turn of the event loop, so that agents that are refused in a loop do not hold up everybody else. */
const MOST_AT_ONCE = 256
const PAUSE_MILLIS = 100

/** koffi's types leave out the first argument of the callback. */
type Poll = (
  descriptor: number,
  events: node.PollOptions,
  callback: (status: number, events: node.PollEvents) => void,
) => node.PollHandle

/**
 * A listener to the kernel's audit system, beside auditd and the journal, which it neither replaces nor hinders. It reads
 * and changes nothing: whether audit is on is the operator's business. Needs CAP_AUDIT_READ. It does not keep the process
 * alive.
 */
export class AuditStream {
  readonly #descriptor: number
  #poll: node.PollHandle | undefined
  #pause: NodeJS.Timeout | undefined
  /** Read, and not yet handed over. */
  #heard: AuditMessage[] = []
  #lost = false

  private constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** Throws `KernelError` where the kernel has no audit or we may not listen. */
  static open(): AuditStream {
    return new AuditStream(inFirstNetns(auditSocket))
  }

  /** Calls `take` for what arrives until `close`; `lost` when there was more than anybody could read. */
  listen(take: (messages: readonly AuditMessage[], lost: boolean) => void): void {
    const poll = ffi().node.poll as unknown as Poll
    // SAFETY: koffi aborts the process for a descriptor that cannot be polled; a netlink socket can. What the callback
    // throws is lost, so it only reads, and the rest happens in a tick of its own.
    this.#poll = poll(this.#descriptor, { readable: true }, () => {
      const read = this.#read()
      if (read.messages.length >= MOST_AT_ONCE) this.#rest(take)
      this.#heard = [...this.#heard, ...read.messages]
      this.#lost ||= read.lost
      setImmediate(() => this.#handOver(take))
    })
    this.#poll.unref()
  }

  /** What is there now, without waiting; what was read and not yet handed over is the first of it. */
  drain(): readonly AuditMessage[] {
    const messages = [...this.#heard, ...this.#read().messages]
    this.#heard = []
    return messages
  }

  close(): void {
    this.#heard = []
    this.#lost = false
    clearTimeout(this.#pause)
    this.#poll?.close()
    this.#poll = undefined
    closeSync(this.#descriptor)
  }

  #handOver(take: (messages: readonly AuditMessage[], lost: boolean) => void): void {
    const [messages, lost] = [this.#heard, this.#lost]
    this.#heard = []
    this.#lost = false
    if (messages.length > 0 || lost) take(messages, lost)
  }

  /** The kernel drops what does not fit meanwhile, and says that it did. */
  #rest(take: (messages: readonly AuditMessage[], lost: boolean) => void): void {
    this.#poll?.close()
    this.#poll = undefined
    this.#pause = setTimeout(() => this.listen(take), PAUSE_MILLIS)
    this.#pause.unref()
  }

  #read(): { messages: AuditMessage[]; lost: boolean } {
    const messages: AuditMessage[] = []
    let lost = false
    const [bytes, from] = [Buffer.alloc(LARGEST), Buffer.alloc(sockaddr_nl.size)]
    const length = Buffer.alloc(4)
    while (messages.length < MOST_AT_ONCE) {
      length.writeUInt32LE(from.length)
      const size = receive(this.#descriptor, bytes, from, length)
      if (size === -constants.errno.ENOBUFS) lost = true
      else if (size < 0) break
      // Port 0 is the kernel; nobody else may speak for it.
      else if (size >= nlmsghdr.size && from.readUInt32LE(sockaddr_nl.nl_pid) === 0)
        messages.push({
          type: bytes.readUInt16LE(nlmsghdr.nlmsg_type),
          text: bytes.toString('latin1', nlmsghdr.size, size).replace(/\0+$/, ''),
        })
    }
    return { messages, lost }
  }
}

const PATIENCE_MILLIS = 500

/** Whether records are made of everything, or of little (of what seccomp refuses, but not of what Landlock does). */
export async function auditEnabled(): Promise<boolean> {
  // SAFETY: integers only.
  const fd = inFirstNetns(() =>
    syscall('socket', NR.socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT),
  )
  try {
    const request = Buffer.alloc(nlmsghdr.size)
    request.writeUInt32LE(request.length, nlmsghdr.nlmsg_len)
    request.writeUInt16LE(AUDIT_GET, nlmsghdr.nlmsg_type)
    request.writeUInt16LE(NLM_F_REQUEST, nlmsghdr.nlmsg_flags)
    // SAFETY: the kernel reads request.length bytes of the array during the call; no address means the kernel itself.
    syscall('sendto', NR.sendto, fd, request, request.length, 0, null, 0)
    const answer = await answerOf(fd)
    if (answer.readUInt16LE(nlmsghdr.nlmsg_type) === NLMSG_ERROR)
      throw new KernelError('AUDIT_GET', -answer.readInt32LE(nlmsghdr.size), ['NETLINK_AUDIT'])
    return answer.readUInt32LE(nlmsghdr.size + audit_status.enabled) !== 0
  } finally {
    closeSync(fd)
  }
}

/** A thread of the kernel sends it, a moment later. */
async function answerOf(fd: number): Promise<Buffer> {
  const [answer, from, length] = [Buffer.alloc(512), Buffer.alloc(sockaddr_nl.size), Buffer.alloc(4)]
  for (let waited = 0; ; waited += 5) {
    length.writeUInt32LE(from.length)
    const size = receive(fd, answer, from, length)
    if (size >= nlmsghdr.size + 4) return answer
    if (waited >= PATIENCE_MILLIS) throw new KernelError('recvfrom', Math.max(-size, 0), ['NETLINK_AUDIT'])
    await delay(5)
  }
}

function auditSocket(): number {
  const name = Buffer.alloc(sockaddr_nl.size)
  name.writeUInt16LE(AF_NETLINK, sockaddr_nl.nl_family)
  name.writeUInt32LE(1 << (AUDIT_NLGRP_READLOG - 1), sockaddr_nl.nl_groups)
  // SAFETY: integers only.
  return bindTo(syscall('socket', NR.socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT), name)
}

function receive(fd: number, into: Buffer, from: Buffer, length: Buffer): number {
  // SAFETY: the kernel writes at most into.length bytes, and as much of the sender's address as `length` allows, which is
  // from.length; all three live until the call returns, which is at once.
  return trySyscall(NR.recvfrom, fd, into, into.length, MSG_DONTWAIT, from, length)
}

/** The kernel speaks in the first network namespace only. */
function inFirstNetns(work: () => number): number {
  const first = elsewhere()
  if (first === null) return work()
  try {
    return insideNetns(first, work)
  } finally {
    closeSync(first)
  }
}

/** Null where we are in it already, or may not look where the first process is: then only silence would come of it. */
function elsewhere(): number | null {
  try {
    if (statSync('/proc/1/ns/net').ino === statSync('/proc/self/ns/net').ino) return null
    return openSync('/proc/1/ns/net', 'r')
  } catch {
    return null
  }
}
