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
const LONG_MIN = -(2n ** 63n)
const LONG_MAX = 2n ** 63n - 1n

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

export interface Layout {
  readonly plan: Buffer
  readonly ops: Buffer
  readonly cloneArgs: Buffer
  /** Everything that is only referenced by address. */
  readonly keep: readonly Uint8Array[]
}

export interface Outcome {
  /** The walk ended without executing a program. */
  readonly returned: boolean
  /** The entry that was being run. */
  readonly at: number
  readonly result: number
  readonly pidfd: number
}

/** A list that the trampoline could not have walked is a defect of the planner, not something to discover in the child. */
function defect(message: string): never {
  throw new PuzzledError('internal', `Malformed spawn plan: ${message}`)
}

export function layOut(request: SpawnRequest, addressOf: AddressOf): Layout {
  const { ops: list } = request
  const last = list.at(-1)
  if (last === undefined || !/^execve(at)?$/.test(last.call))
    defect('the last entry must be execve or execveat')
  const keep: Uint8Array[] = []
  const address = (bytes: Uint8Array): bigint => {
    keep.push(bytes)
    return bytes.byteLength === 0 ? 0n : addressOf(bytes)
  }
  const ops = Buffer.alloc(list.length * OP.bytes)
  const stores = new Stores(list, addressOf(ops))
  for (const [index, op] of list.entries())
    writeOp(ops.subarray(index * OP.bytes), op, index, stores, address)

  const plan = Buffer.alloc(PLAN.bytes)
  plan.writeBigUInt64LE(address(ops), PLAN.ops)
  plan.writeBigInt64LE(BigInt(list.length), PLAN.count)
  plan.writeBigUInt64LE(address(stores.encode()), PLAN.stores)
  plan.writeInt32LE(-1, PLAN.pidfd)
  return { plan, ops, cloneArgs: cloneArguments(request, address(plan) + BigInt(PLAN.pidfd)), keep }
}

function cloneArguments(request: SpawnRequest, pidfdAddress: bigint): Buffer {
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

function writeOp(
  at: Buffer,
  op: SpawnOp,
  index: number,
  stores: Stores,
  address: (bytes: Uint8Array) => bigint,
): void {
  const nr = SYSCALLS[op.call] ?? defect(`${op.name}: no system call "${op.call}" on this architecture`)
  if (op.args.length > 6) defect(`${op.name}: more than six arguments`)
  at.writeBigInt64LE(BigInt(nr), 0)
  op.args.forEach((arg, position) => {
    const word = OP.args + position * 8
    if (isSlot(arg)) stores.connect(arg.slot, index, stores.opsAddress + BigInt(index * OP.bytes + word))
    else at.writeBigInt64LE(BigInt.asIntN(64, argumentWord(arg, op, address)), word)
  })
  const [min, max] = expected(op)
  at.writeBigInt64LE(min, OP.min)
  at.writeBigInt64LE(max, OP.max)
  for (const { arg, offset, slot } of op.patch ?? []) {
    const bytes = bytesOf(op.args[arg])
    if (bytes === undefined || offset < 0 || offset + 4 > bytes.byteLength)
      defect(`${op.name}: patch of argument ${arg} at ${offset} lies outside`)
    stores.connect(slot, index, address(bytes) + BigInt(offset))
  }
}

const isSlot = (arg: SpawnArg): arg is { readonly slot: string } =>
  typeof arg === 'object' && arg !== null && 'slot' in arg

function bytesOf(arg: SpawnArg | undefined): Uint8Array | undefined {
  if (arg instanceof Uint8Array) return arg
  return typeof arg === 'object' && arg !== null && 'struct' in arg ? arg.struct : undefined
}

function argumentWord(
  arg: Exclude<SpawnArg, { slot: string }>,
  op: SpawnOp,
  address: (bytes: Uint8Array) => bigint,
): bigint {
  if (arg === null) return 0n
  if (typeof arg === 'bigint') return arg
  if (typeof arg === 'number') return Number.isSafeInteger(arg) ? BigInt(arg) : defect(`${op.name}: ${arg}`)
  if (arg instanceof Uint8Array) return address(arg)
  if ('vector' in arg) {
    const vector = Buffer.alloc((arg.vector.length + 1) * 8)
    arg.vector.forEach((item, index) => {
      if (item.at(-1) !== 0) defect(`${op.name}: element ${index} does not end in NUL`)
      vector.writeBigUInt64LE(address(item), index * 8)
    })
    return address(vector)
  }
  const struct = Buffer.from(arg.struct.buffer, arg.struct.byteOffset, arg.struct.byteLength)
  for (const { offset, to } of arg.pointers) struct.writeBigUInt64LE(address(to), offset)
  return address(arg.struct)
}

function expected(op: SpawnOp): readonly [bigint, bigint] {
  if (op.expect === 'ok') return [0n, LONG_MAX]
  if (op.expect === 'any') return [LONG_MIN, LONG_MAX]
  const errno = errnoNumber(op.expect.errno)
  if (errno === 0) defect(`${op.name}: no errno "${op.expect.errno}"`)
  return [BigInt(-errno), BigInt(-errno)]
}

/** Which results go where; the trampoline wants them in the order of the entries that make them. */
class Stores {
  readonly opsAddress: bigint
  readonly #madeBy = new Map<string, number>()
  readonly #connections: { from: number; to: bigint }[] = []

  constructor(ops: readonly SpawnOp[], opsAddress: bigint) {
    this.opsAddress = opsAddress
    ops.forEach(({ store, name }, index) => {
      if (store === undefined) return
      if (this.#madeBy.has(store)) defect(`${name}: "${store}" is stored twice`)
      this.#madeBy.set(store, index)
    })
  }

  connect(slot: string, usedBy: number, to: bigint): void {
    const from = this.#madeBy.get(slot)
    if (from === undefined || from >= usedBy) defect(`entry ${usedBy} uses "${slot}" before it is stored`)
    this.#connections.push({ from, to })
  }

  encode(): Buffer {
    const bytes = Buffer.alloc((this.#connections.length + 1) * STORE.bytes)
    const sorted = this.#connections.toSorted((a, b) => a.from - b.from)
    sorted.forEach(({ from, to }, index) => {
      bytes.writeBigInt64LE(BigInt(from), index * STORE.bytes + STORE.from)
      bytes.writeBigUInt64LE(to, index * STORE.bytes + STORE.to)
    })
    bytes.writeBigInt64LE(-1n, sorted.length * STORE.bytes)
    return bytes
  }
}

/** What the child left in the plan. */
export function readOutcome({ plan, ops }: Layout): Outcome {
  const at = Number(plan.readBigInt64LE(PLAN.at))
  return {
    returned: plan.readBigInt64LE(PLAN.returned) !== 0n,
    at,
    result: Number(ops.readBigInt64LE(at * OP.bytes + OP.result)),
    pidfd: plan.readInt32LE(PLAN.pidfd),
  }
}
