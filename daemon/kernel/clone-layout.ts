// pure
import type { SpawnArg, SpawnOp, SpawnRequest } from '../contract/spawn.ts'
import { PuzzledError } from '../lib/errors.ts'
import { errnoNumber } from './errno.ts'
import {
  CLONE_INTO_CGROUP,
  CLONE_NEWCGROUP,
  CLONE_NEWIPC,
  CLONE_NEWNET,
  CLONE_NEWNS,
  CLONE_NEWPID,
  CLONE_NEWTIME,
  CLONE_NEWUSER,
  CLONE_NEWUTS,
  CLONE_PIDFD,
  CLONE_VFORK,
  CLONE_VM,
  clone_args,
  SYSCALLS,
} from './uapi/index.ts'

/** The arrays that native/spawn.c walks, laid out in memory. The structures are those at the top of that file. */

const OP = { bytes: 80, args: 8, min: 56, max: 64, result: 72 } as const
const STORE = { bytes: 16, from: 0, to: 8 } as const
const PLAN = { bytes: 48, ops: 0, count: 8, stores: 16, at: 24, returned: 32, pidfd: 40 } as const
/** Upper halves of the smallest and the largest word. */
const LOWEST_HALF = -(2 ** 31)
const HIGHEST_HALF = 2 ** 31 - 1

const NAMESPACE = {
  NEWNS: CLONE_NEWNS,
  NEWPID: CLONE_NEWPID,
  NEWNET: CLONE_NEWNET,
  NEWIPC: CLONE_NEWIPC,
  NEWUTS: CLONE_NEWUTS,
  NEWCGROUP: CLONE_NEWCGROUP,
  NEWTIME: CLONE_NEWTIME,
  NEWUSER: CLONE_NEWUSER,
} as const

/** How the layout learns where a byte array lies; the arrays must stay referenced until the child has executed. */
export type AddressOf = (bytes: Uint8Array) => bigint

/**
 * Where byte arrays lie. Most of a plan's are short and share memory (Node cuts them out of one piece), so that the
 * question is asked once for each piece: it costs as much as a system call. Addresses are numbers: user space ends far
 * below 2^53, and arithmetic on bigints was a third of what a start computes.
 */
class Addresses {
  readonly keep: Uint8Array[] = []
  readonly #ask: AddressOf
  readonly #pieces = new Map<ArrayBufferLike, number>()

  constructor(ask: AddressOf) {
    this.#ask = ask
  }

  of(bytes: Uint8Array): number {
    this.keep.push(bytes)
    if (bytes.byteLength === 0) return 0
    const known = this.#pieces.get(bytes.buffer)
    if (known !== undefined) return known + bytes.byteOffset
    const address = Number(this.#ask(bytes))
    if (!Number.isSafeInteger(address)) defect(`an address of ${address}`)
    this.#pieces.set(bytes.buffer, address - bytes.byteOffset)
    return address
  }
}

/** A word of 64 bits, little-endian as both ABIs are, in two halves. */
function writeWord(at: Buffer, value: number, offset: number): void {
  at.writeInt32LE(value | 0, offset)
  at.writeInt32LE(Math.floor(value / 2 ** 32) | 0, offset + 4)
}

/** What the clone itself needs. It has no list yet: the child waits for it. */
export interface Birth {
  readonly plan: Buffer
  readonly cloneArgs: Buffer
}

export interface Layout {
  readonly ops: Buffer
  /** Everything that is only referenced by address. */
  readonly keep: readonly Uint8Array[]
}

export interface Outcome {
  /** The walk ended without executing a program. */
  readonly returned: boolean
  /** The entry that was being run; -1 before the first. */
  readonly at: number
  readonly result: number
  readonly pidfd: number
}

/** A list that the trampoline could not have walked is a defect of the planner, not something to discover in the child. */
function defect(message: string): never {
  throw new PuzzledError('internal', `Malformed spawn plan: ${message}`)
}

export function layOutBirth(request: Omit<SpawnRequest, 'ops'>, addressOf: AddressOf): Birth {
  const plan = Buffer.alloc(PLAN.bytes)
  plan.writeBigInt64LE(-1n, PLAN.at)
  plan.writeInt32LE(-1, PLAN.pidfd)
  return { plan, cloneArgs: cloneArguments(request, addressOf(plan) + BigInt(PLAN.pidfd)) }
}

/** Lays the list out and enters it into the plan. Throws before anything is entered. */
export function layOut(list: readonly SpawnOp[], { plan }: Birth, addressOf: AddressOf): Layout {
  const last = list.at(-1)
  if (last === undefined || !/^execve(at)?$/.test(last.call))
    defect('the last entry must be execve or execveat')
  const addresses = new Addresses(addressOf)
  const ops = Buffer.alloc(list.length * OP.bytes)
  const stores = new Stores(list, addresses.of(ops))
  for (const [index, op] of list.entries())
    (op.kept === true ? writeKept : writeOp)(ops, op, index, stores, addresses)

  const storesAddress = addresses.of(stores.encode())
  writeWord(plan, stores.opsAddress, PLAN.ops)
  writeWord(plan, list.length, PLAN.count)
  writeWord(plan, storesAddress, PLAN.stores)
  return { ops, keep: addresses.keep }
}

function cloneArguments(request: Omit<SpawnRequest, 'ops'>, pidfdAddress: bigint): Buffer {
  const bytes = Buffer.alloc(clone_args.size)
  let flags = BigInt(CLONE_VM | CLONE_VFORK | CLONE_PIDFD)
  for (const name of request.namespaces) flags |= BigInt(NAMESPACE[name])
  if (request.cgroupFd !== undefined) {
    flags |= BigInt(CLONE_INTO_CGROUP)
    bytes.writeBigUInt64LE(BigInt(request.cgroupFd), clone_args.cgroup)
  }
  bytes.writeBigUInt64LE(flags, clone_args.flags)
  bytes.writeBigUInt64LE(pidfdAddress, clone_args.pidfd)
  return bytes
}

/** What `writeOp` wrote for an entry that is part of many plans: its words, and where results go. */
interface Remembered {
  readonly words: Int32Array
  readonly slots: readonly { readonly slot: string; readonly at: number }[]
  /** Whatever the words point at: it stays where it is as long as somebody refers to it. */
  readonly pointedAt: readonly Uint8Array[]
}

const remembered = new WeakMap<SpawnOp, Remembered>()

function writeKept(ops: Buffer, op: SpawnOp, index: number, stores: Stores, addresses: Addresses): void {
  if (op.patch !== undefined) defect(`${op.name}: kept and patched`)
  const known = remembered.get(op)
  if (known !== undefined) {
    // Word by word: asking for a copy of eighty bytes takes longer than making it.
    for (let word = 0; word < known.words.length; word++)
      if (known.words[word] !== 0) ops.writeInt32LE(known.words[word] ?? 0, index * OP.bytes + word * 4)
    for (const bytes of known.pointedAt) addresses.keep.push(bytes)
    for (const { slot, at } of known.slots)
      stores.connect(slot, index, stores.opsAddress + index * OP.bytes + at)
    return
  }
  const before = addresses.keep.length
  writeOp(ops, op, index, stores, addresses)
  const slots = op.args.flatMap((arg, position) =>
    isSlot(arg) ? [{ slot: arg.slot, at: OP.args + position * 8 }] : [],
  )
  const words = Int32Array.from({ length: OP.bytes / 4 }, (_, word) =>
    ops.readInt32LE(index * OP.bytes + word * 4),
  )
  remembered.set(op, { words, slots, pointedAt: addresses.keep.slice(before) })
}

function writeOp(ops: Buffer, op: SpawnOp, index: number, stores: Stores, addresses: Addresses): void {
  const nr = SYSCALLS[op.call] ?? defect(`${op.name}: no system call "${op.call}" on this architecture`)
  if (op.args.length > 6) defect(`${op.name}: more than six arguments`)
  const at = index * OP.bytes
  writeWord(ops, nr, at)
  op.args.forEach((arg, position) => {
    const word = at + OP.args + position * 8
    if (isSlot(arg)) stores.connect(arg.slot, index, stores.opsAddress + word)
    else if (typeof arg === 'bigint') ops.writeBigInt64LE(BigInt.asIntN(64, arg), word)
    else writeWord(ops, argumentWord(arg, op, addresses), word)
  })
  writeExpected(ops, op, at)
  for (const { arg, offset, slot } of op.patch ?? []) {
    const bytes = bytesOf(op.args[arg])
    if (bytes === undefined || offset < 0 || offset + 4 > bytes.byteLength)
      defect(`${op.name}: patch of argument ${arg} at ${offset} lies outside`)
    stores.connect(slot, index, addresses.of(bytes) + offset)
  }
}

const isSlot = (arg: SpawnArg): arg is { readonly slot: string } =>
  typeof arg === 'object' && arg !== null && 'slot' in arg

function bytesOf(arg: SpawnArg | undefined): Uint8Array | undefined {
  if (arg instanceof Uint8Array) return arg
  return typeof arg === 'object' && arg !== null && 'struct' in arg ? arg.struct : undefined
}

function argumentWord(
  arg: Exclude<SpawnArg, bigint | { slot: string }>,
  op: SpawnOp,
  addresses: Addresses,
): number {
  if (arg === null) return 0
  if (typeof arg === 'number') return Number.isSafeInteger(arg) ? arg : defect(`${op.name}: ${arg}`)
  if (arg instanceof Uint8Array) return addresses.of(arg)
  if ('vector' in arg) {
    const vector = Buffer.alloc((arg.vector.length + 1) * 8)
    arg.vector.forEach((item, index) => {
      if (item.at(-1) !== 0) defect(`${op.name}: element ${index} does not end in NUL`)
      writeWord(vector, addresses.of(item), index * 8)
    })
    return addresses.of(vector)
  }
  const struct = Buffer.from(arg.struct.buffer, arg.struct.byteOffset, arg.struct.byteLength)
  for (const { offset, to } of arg.pointers) writeWord(struct, addresses.of(to), offset)
  return addresses.of(arg.struct)
}

/** Results that let the walk go on. */
function writeExpected(ops: Buffer, op: SpawnOp, at: number): void {
  if (typeof op.expect === 'object') {
    const errno = errnoNumber(op.expect.errno)
    if (errno === 0) defect(`${op.name}: no errno "${op.expect.errno}"`)
    writeWord(ops, -errno, at + OP.min)
    writeWord(ops, -errno, at + OP.max)
    return
  }
  if (op.expect === 'any') ops.writeInt32LE(LOWEST_HALF, at + OP.min + 4)
  ops.writeInt32LE(-1, at + OP.max)
  ops.writeInt32LE(HIGHEST_HALF, at + OP.max + 4)
}

/** Which results go where; the trampoline wants them in the order of the entries that make them. */
class Stores {
  readonly opsAddress: number
  readonly #madeBy = new Map<string, number>()
  /** By the entry that makes the result: a sort of some two hundred took as long as laying out the rest. */
  readonly #targets: number[][]
  #count = 0

  constructor(ops: readonly SpawnOp[], opsAddress: number) {
    this.opsAddress = opsAddress
    this.#targets = new Array(ops.length)
    for (const [index, { store, name }] of ops.entries()) {
      if (store === undefined) continue
      if (this.#madeBy.has(store)) defect(`${name}: "${store}" is stored twice`)
      this.#madeBy.set(store, index)
      this.#targets[index] = []
    }
  }

  connect(slot: string, usedBy: number, to: number): void {
    const from = this.#madeBy.get(slot)
    if (from === undefined || from >= usedBy) defect(`entry ${usedBy} uses "${slot}" before it is stored`)
    this.#targets[from]?.push(to)
    this.#count++
  }

  encode(): Buffer {
    const bytes = Buffer.alloc((this.#count + 1) * STORE.bytes)
    let at = 0
    for (const [from, targets] of this.#targets.entries())
      for (const to of targets ?? []) {
        writeWord(bytes, from, at + STORE.from)
        writeWord(bytes, to, at + STORE.to)
        at += STORE.bytes
      }
    writeWord(bytes, -1, at)
    return bytes
  }
}

/** What the child left in the plan; `ops` are null where it never got its list. */
export function readOutcome({ plan }: Birth, ops: Buffer | null): Outcome {
  const at = Number(plan.readBigInt64LE(PLAN.at))
  return {
    returned: plan.readBigInt64LE(PLAN.returned) !== 0n,
    at,
    result: at < 0 || ops === null ? 0 : Number(ops.readBigInt64LE(at * OP.bytes + OP.result)),
    pidfd: plan.readInt32LE(PLAN.pidfd),
  }
}
