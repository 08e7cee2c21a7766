import { closeSync, openSync, readSync } from 'node:fs'
import { constants } from 'node:os'
import type { node } from 'koffi'
import { PuzzledError } from '../lib/errors.ts'
import { ffi, KernelError, syscall, trySyscall } from './ffi.ts'
import {
  NR,
  SECCOMP_ADDFD_FLAG_SEND,
  SECCOMP_IOCTL_NOTIF_ADDFD,
  SECCOMP_IOCTL_NOTIF_ID_VALID,
  SECCOMP_IOCTL_NOTIF_RECV,
  SECCOMP_IOCTL_NOTIF_SEND,
  SECCOMP_USER_NOTIF_FLAG_CONTINUE,
  seccomp_data,
  seccomp_notif,
  seccomp_notif_addfd,
  seccomp_notif_resp,
} from './uapi/index.ts'

/** koffi's types leave out the first argument of the callback. */
type Poll = (
  descriptor: number,
  events: node.PollOptions,
  callback: (status: number, events: node.PollEvents) => void,
) => node.PollHandle
const poll: Poll = (...args) => (ffi().node.poll as unknown as Poll)(...args)

/** A process that waits in a system call for our answer. */
export interface Question {
  readonly id: bigint
  /** As we see it: 0 when the process lives in a PID namespace that is not below ours. */
  readonly pid: number
  readonly number: number
  readonly args: readonly bigint[]
}

/**
 * The daemon's end of a seccomp listener.
 *
 * What a pointer argument points at is the asker's memory: another of its threads may change it at any time. So an
 * answer that *grants* something on the ground of such content must do the act itself and hand over the result
 * (`answerWithDescriptor`); `letContinue` is only for answers that do not depend on it, such as counting.
 * A question may be gone at any moment (its process was killed) and its pid be somebody else's: every read of the
 * asker's memory is followed by a look whether the question still stands.
 */
export class SeccompListener {
  readonly #descriptor: number
  #poll: node.PollHandle | undefined

  /** Takes over the descriptor, which must be a seccomp listener. */
  constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** Calls `ask` for every question until `close`, and `ended` once when the last process with the filter is gone. */
  listen(ask: (question: Question) => void, ended: () => void = () => undefined): void {
    if (this.#poll !== undefined) throw new PuzzledError('internal', 'The listener is already listening')
    // SAFETY: koffi aborts the process for a descriptor that cannot be polled; a seccomp listener can (constructor).
    // The callback runs outside of any JavaScript tick and what it throws is lost: it only reads, and the rest happens
    // in a tick of its own.
    this.#poll = poll(this.#descriptor, { readable: true, disconnect: true }, (_status, events) => {
      // A hang-up is shown as readable, too; asking for a question then would wait for ever.
      if (events.disconnect) {
        this.#stop()
        setImmediate(ended)
      } else if (events.readable) {
        const question = this.#receiveOrFail()
        if (question !== undefined) setImmediate(ask, question)
      }
    })
  }

  #receiveOrFail(): Question | undefined {
    try {
      return this.receive()
    } catch (error) {
      this.#stop()
      setImmediate(() => {
        throw error
      })
      return undefined
    }
  }

  /** The next question. Blocks when there is none, so call it only when the descriptor is readable. */
  receive(): Question | undefined {
    // The kernel refuses a buffer that is not all zero.
    const bytes = new Uint8Array(seccomp_notif.size)
    const result = this.#ioctl(SECCOMP_IOCTL_NOTIF_RECV, bytes)
    // The asker was killed between the wake-up and now.
    if (result === -constants.errno.ENOENT || result === -constants.errno.EINTR) return undefined
    if (result < 0) throw new KernelError('ioctl', -result, ['SECCOMP_IOCTL_NOTIF_RECV'])
    const view = new DataView(bytes.buffer)
    const args = seccomp_notif.data + seccomp_data.args
    return {
      id: view.getBigUint64(seccomp_notif.id, true),
      pid: view.getUint32(seccomp_notif.pid, true),
      number: view.getInt32(seccomp_notif.data + seccomp_data.nr, true),
      args: Array.from({ length: 6 }, (_, index) => view.getBigUint64(args + 8 * index, true)),
    }
  }

  /** Does the question still stand? Ask after every look at the asker. */
  stands(id: bigint): boolean {
    const bytes = new Uint8Array(8)
    new DataView(bytes.buffer).setBigUint64(0, id, true)
    return this.#ioctl(SECCOMP_IOCTL_NOTIF_ID_VALID, bytes) === 0
  }

  /** Lets the kernel go on with the call as it is *then*. False when the question is gone. */
  letContinue(id: bigint): boolean {
    return this.#answer(id, 0n, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE)
  }

  /** The call fails with this errno, without having been made. */
  refuse(id: bigint, errno: number): boolean {
    return this.#answer(id, 0n, -errno, 0)
  }

  /** The call returns a descriptor of the asker's that refers to what `descriptor` is here (close-on-exec there). */
  answerWithDescriptor(id: bigint, descriptor: number): boolean {
    const bytes = new Uint8Array(seccomp_notif_addfd.size)
    const view = new DataView(bytes.buffer)
    view.setBigUint64(seccomp_notif_addfd.id, id, true)
    view.setUint32(seccomp_notif_addfd.flags, SECCOMP_ADDFD_FLAG_SEND, true)
    view.setUint32(seccomp_notif_addfd.srcfd, descriptor, true)
    view.setUint32(seccomp_notif_addfd.newfd_flags, O_CLOEXEC, true)
    return this.#sent(this.#ioctl(SECCOMP_IOCTL_NOTIF_ADDFD, bytes), 'SECCOMP_IOCTL_NOTIF_ADDFD')
  }

  /**
   * A C string of the asker, read once. Undefined when the question is gone meanwhile, or when it is not a string of at
   * most `limit` bytes. The copy is what must be judged *and* used.
   */
  readString(question: Question, address: bigint, limit = 4096): Buffer | undefined {
    const copy = readMemory(question.pid, address, limit)
    if (copy === undefined || !this.stands(question.id)) return undefined
    const end = copy.indexOf(0)
    return end < 0 ? undefined : copy.subarray(0, end)
  }

  /** Processes that ask from now on get ENOSYS: nothing passes because the daemon is gone. */
  close(): void {
    this.#stop()
    closeSync(this.#descriptor)
  }

  #stop(): void {
    this.#poll?.close()
    this.#poll = undefined
  }

  #answer(id: bigint, value: bigint, error: number, flags: number): boolean {
    const bytes = new Uint8Array(seccomp_notif_resp.size)
    const view = new DataView(bytes.buffer)
    view.setBigUint64(seccomp_notif_resp.id, id, true)
    view.setBigInt64(seccomp_notif_resp.val, value, true)
    view.setInt32(seccomp_notif_resp.error, error, true)
    view.setUint32(seccomp_notif_resp.flags, flags, true)
    return this.#sent(this.#ioctl(SECCOMP_IOCTL_NOTIF_SEND, bytes), 'SECCOMP_IOCTL_NOTIF_SEND')
  }

  #sent(result: number, request: string): boolean {
    if (result === -constants.errno.ENOENT) return false
    if (result < 0) throw new KernelError('ioctl', -result, [request])
    return true
  }

  #ioctl(request: number, bytes: Uint8Array): number {
    // SAFETY: synchronous; `bytes` has the size that is encoded in the request and outlives the call.
    return trySyscall(NR.ioctl, this.#descriptor, request, bytes)
  }
}

const O_CLOEXEC = 0o2000000
const PAGE = 4096

/** Up to `limit` bytes from another process, not further than its mapped pages. */
function readMemory(pid: number, address: bigint, limit: number): Buffer | undefined {
  let memory: number
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r')
  } catch {
    // The process is gone; its question is, too.
    return undefined
  }
  try {
    const copy = Buffer.alloc(limit)
    let length = 0
    while (length < limit) {
      const at = address + BigInt(length)
      const inPage = PAGE - Number(at % BigInt(PAGE))
      const read = readAt(memory, copy, length, Math.min(limit - length, inPage), at)
      if (read <= 0) break
      length += read
      if (copy.subarray(length - read, length).includes(0)) break
    }
    return length === 0 ? undefined : copy.subarray(0, length)
  } finally {
    closeSync(memory)
  }
}

function readAt(memory: number, into: Buffer, offset: number, length: number, at: bigint): number {
  try {
    return readSync(memory, into, offset, length, at)
  } catch {
    // EIO: the page is not mapped. The string ends before it or is not one.
    return 0
  }
}

/** Takes the listener out of the child that installed the filter (its descriptor is in the plan's slot). */
export function takeListener(pidfd: number, descriptor: number): SeccompListener {
  // SAFETY: integers only; the result is ours to close.
  return new SeccompListener(syscall('pidfd_getfd', NR.pidfd_getfd, pidfd, descriptor, 0))
}
