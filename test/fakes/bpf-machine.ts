/** `struct seccomp_data`: what a filter sees of a system call. */
export interface SystemCall {
  readonly number: number
  readonly architecture?: number
  readonly args?: readonly (number | bigint)[]
}

export const AUDIT_ARCH_X86_64 = 0xc000003e
export const AUDIT_ARCH_I386 = 0x40000003

const LD_ABS = 0x20
const AND = 0x54
const JUMP_ALWAYS = 0x05
const RETURN = 0x06
const COMPARE: Readonly<Record<number, (a: number, k: number) => boolean>> = {
  21: (a, k) => a === k,
  37: (a, k) => a > k,
  53: (a, k) => a >= k,
  69: (a, k) => (a & k) !== 0,
}

/** Runs classic BPF as the kernel does for seccomp and returns the 32-bit answer. Unknown instructions throw. */
export function runFilter(bpf: Uint8Array, call: SystemCall): number {
  const code = new DataView(bpf.buffer, bpf.byteOffset, bpf.byteLength)
  const data = seccompData(call)
  let accumulator = 0
  for (let at = 0; at * 8 < bpf.length; at++) {
    const opcode = code.getUint16(at * 8, true)
    const k = code.getUint32(at * 8 + 4, true)
    const compare = COMPARE[opcode]
    if (compare !== undefined) at += code.getUint8(at * 8 + (compare(accumulator, k) ? 2 : 3))
    else if (opcode === LD_ABS) accumulator = data.getUint32(k, true)
    else if (opcode === AND) accumulator = (accumulator & k) >>> 0
    else if (opcode === JUMP_ALWAYS) at += k
    else if (opcode === RETURN) return k
    else throw new RangeError(`Instruction ${at} has the unknown code ${opcode}`)
  }
  throw new RangeError('The program runs off its end')
}

function seccompData(call: SystemCall): DataView {
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, call.number, true)
  data.setUint32(4, call.architecture ?? AUDIT_ARCH_X86_64, true)
  for (const [index, arg] of (call.args ?? []).entries())
    data.setBigUint64(16 + 8 * index, BigInt.asUintN(64, BigInt(arg)), true)
  return data
}
