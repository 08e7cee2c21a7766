import { KernelError, loadLibrary, syscall } from './ffi.ts'
import type { Condition, FilterAction, FilterSource } from './seccomp-filter.ts'
import { NR } from './uapi/syscalls.ts'

const ACTION = { allow: 0x7fff0000, notify: 0x7fc00000, kill: 0x80000000, errno: 0x00050000 } as const
const ATTRIBUTE = { BAD_ARCHITECTURE: 2, OPTIMIZE: 8 } as const
const BINARY_TREE = 2
const COMPARE = { ne: 1, eq: 4, gt: 6, masked: 7 } as const
const LOW_HALF = 0xffffffff
const CONDITION_BYTES = 24
const MFD_CLOEXEC = 1

type Context = object

interface Libseccomp {
  init(action: number): Context | null
  release(context: Context): void
  attribute(context: Context, name: number, value: number): number
  add(context: Context, action: number, number: number, count: number, conditions: Uint8Array): number
  export(context: Context, descriptor: number): number
}

let bound: Libseccomp | undefined

function libseccomp(): Libseccomp {
  if (bound !== undefined) return bound
  const library = loadLibrary('libseccomp.so.2', 'libseccomp2')
  bound = {
    init: library.func('void *seccomp_init(uint32_t action)') as Libseccomp['init'],
    release: library.func('void seccomp_release(void *context)') as Libseccomp['release'],
    attribute: library.func(
      'int seccomp_attr_set(void *context, int name, uint32_t value)',
    ) as Libseccomp['attribute'],
    add: library.func(
      'int seccomp_rule_add_array(void *context, uint32_t action, int number, uint count, const void *conditions)',
    ) as Libseccomp['add'],
    export: library.func('int seccomp_export_bpf(const void *context, int fd)') as Libseccomp['export'],
  }
  return bound
}

/**
 * Compiles a filter for the running architecture: `struct sock_filter[]`, ready for seccomp(2). System calls go by
 * number because libseccomp may be older than the kernel. Calls of another ABI end the process.
 */
export function compileFilter(source: FilterSource): Uint8Array {
  const library = libseccomp()
  // SAFETY: allocates a context that this function alone owns; null means out of memory.
  const context = library.init(actionWord(source.fallback))
  if (context === null) throw new KernelError('seccomp_init', 12)
  try {
    // SAFETY: `context` is live until `release`; both attributes exist since libseccomp 2.5.0.
    check('seccomp_attr_set', library.attribute(context, ATTRIBUTE.BAD_ARCHITECTURE, ACTION.kill))
    // SAFETY: as above. A tree instead of a list: the kernel simulates every number when the filter is installed.
    check('seccomp_attr_set', library.attribute(context, ATTRIBUTE.OPTIMIZE, BINARY_TREE))
    for (const rule of source.rules) {
      const conditions = conditionArray(rule.when)
      // SAFETY: libseccomp copies the array, which has as many elements as the count says.
      const result = library.add(context, actionWord(rule.action), rule.number, rule.when.length, conditions)
      check('seccomp_rule_add_array', result, [rule.number, JSON.stringify(rule)])
    }
    return exported(library, context)
  } finally {
    // SAFETY: the context was made above and is not used again.
    library.release(context)
  }
}

const actionWord = (action: FilterAction): number =>
  typeof action === 'string' ? ACTION[action] : ACTION.errno | action.errno

/** `struct scmp_arg_cmp[]`: argument, operator, two 64-bit operands. */
function conditionArray(conditions: readonly Condition[]): Uint8Array {
  const bytes = new Uint8Array(CONDITION_BYTES * Math.max(1, conditions.length))
  const view = new DataView(bytes.buffer)
  for (const [index, condition] of conditions.entries()) {
    const at = CONDITION_BYTES * index
    const masked = condition.op === 'masked' || condition.op === 'low'
    const mask = condition.op === 'masked' ? condition.mask : LOW_HALF
    view.setUint32(at, condition.arg, true)
    view.setUint32(at + 4, condition.op === 'low' ? COMPARE.masked : COMPARE[condition.op], true)
    view.setBigUint64(at + 8, BigInt(masked ? mask : condition.value), true)
    view.setBigUint64(at + 16, BigInt(masked ? condition.value : 0), true)
  }
  return bytes
}

/** Through a memory file: `seccomp_export_bpf_mem` is newer than the libseccomp of Debian 12. */
function exported(library: Libseccomp, context: Context): Uint8Array {
  // SAFETY: the name is read during the call; the descriptor is closed below.
  const memory = syscall('memfd_create', NR.memfd_create, Buffer.from('seccomp\0'), MFD_CLOEXEC)
  try {
    // SAFETY: the context is live; libseccomp only writes to the descriptor.
    check('seccomp_export_bpf', library.export(context, memory))
    const size = syscall('lseek', NR.lseek, memory, 0, 2)
    const bytes = new Uint8Array(size)
    // SAFETY: the array is as long as the count and outlives the synchronous call.
    const read = syscall('pread64', NR.pread64, memory, bytes, size, 0)
    if (read !== size) throw new KernelError('pread64', 5, ['seccomp', read, size])
    return bytes
  } finally {
    // SAFETY: this function's own descriptor.
    syscall('close', NR.close, memory)
  }
}

/** libseccomp answers with negative error numbers. */
function check(call: string, result: number, args: readonly unknown[] = []): void {
  if (result < 0) throw new KernelError(call, -result, args)
}
