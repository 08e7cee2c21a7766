// pure
import { Buffer } from 'node:buffer'
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import { SOL_SOCKET } from './uapi/index.ts'

const SCM_RIGHTS = 1

/** One message with one descriptor in a single array: msghdr (56 bytes), iovec (16), one byte of data, cmsghdr and a word. */
export const LAYOUT = {
  iovec: 56,
  data: 72,
  control: 80,
  descriptor: 96,
  size: 104,
  controlBytes: 24,
} as const
const CONTROL_LENGTH = 20

/** A `struct msghdr` with room for one descriptor; the pointers lead into its own bytes. */
export function message(): { bytes: Buffer; pointers: { offset: number; to: Uint8Array }[] } {
  const bytes = Buffer.alloc(LAYOUT.size)
  bytes.writeBigUInt64LE(1n, 24)
  bytes.writeBigUInt64LE(BigInt(LAYOUT.controlBytes), 40)
  bytes.writeBigUInt64LE(1n, LAYOUT.iovec + 8)
  bytes.writeBigUInt64LE(BigInt(CONTROL_LENGTH), LAYOUT.control)
  bytes.writeInt32LE(SOL_SOCKET, LAYOUT.control + 8)
  bytes.writeInt32LE(SCM_RIGHTS, LAYOUT.control + 12)
  const pointers = [
    { offset: 16, to: bytes.subarray(LAYOUT.iovec) },
    { offset: 32, to: bytes.subarray(LAYOUT.control) },
    { offset: LAYOUT.iovec, to: bytes.subarray(LAYOUT.data) },
  ]
  return { bytes, pointers }
}

/** A planned call that sends the descriptor of an earlier entry from the child to the daemon. */
export function sendDescriptorOp(name: string, socket: SpawnArg, slot: string): SpawnOp {
  const { bytes, pointers } = message()
  return {
    name,
    call: 'sendmsg',
    args: [socket, { struct: bytes, pointers }, 0],
    expect: 'ok',
    patch: [{ arg: 1, offset: LAYOUT.descriptor, slot }],
  }
}
