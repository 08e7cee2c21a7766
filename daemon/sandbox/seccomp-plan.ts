// pure
import type { SpawnOp } from '../contract/spawn.ts'

/** One compiled program: what `kernel/seccomp.ts` exports and the child installs. */
export interface SeccompFilter {
  /** For people: `standard: system calls`. */
  readonly name: string
  /** `struct sock_filter[]`. */
  readonly bpf: Uint8Array
  /** The filter asks a listener in the daemon; the descriptor is stored as `seccomp-listener`. */
  readonly listener?: boolean
  /** The kernel's audit system hears of what the filter refuses. */
  readonly logged?: boolean
}

const SET_MODE_FILTER = 1
const FLAG_LOG = 1 << 1
const FLAG_NEW_LISTENER = 1 << 3
/** The asking process can only be killed while it waits: a signal cannot make it repeat the question (5.19). */
const FLAG_WAIT_KILLABLE_RECV = 1 << 5
const INSTRUCTION_BYTES = 8

/** The slot that holds the listener's descriptor (of the child: fetch it with `pidfd_getfd`). */
export const LISTENER_SLOT = 'seccomp-listener'

/**
 * Installs the filters in order; the strictest answer of all of them counts. Must come after no_new_privs and after
 * everything else that configures: later system calls of the child are judged, too.
 */
export const seccompOps = (filters: readonly SeccompFilter[]): readonly SpawnOp[] => filters.map(filterOp)

const kept = new WeakMap<SeccompFilter, SpawnOp>()

/** Filters are made once in the life of a process, and so is how they are installed. */
function filterOp(filter: SeccompFilter): SpawnOp {
  const known = kept.get(filter)
  if (known !== undefined) return known
  const op: SpawnOp = {
    name: `install seccomp filter "${filter.name}" (${filter.bpf.length / INSTRUCTION_BYTES} instructions)`,
    call: 'seccomp',
    args: [
      SET_MODE_FILTER,
      (filter.listener === true ? FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE_RECV : 0) |
        (filter.logged === true ? FLAG_LOG : 0),
      programHeader(filter.bpf),
    ],
    expect: 'ok' as const,
    kept: true,
    ...(filter.listener === true ? { store: LISTENER_SLOT } : {}),
  }
  kept.set(filter, op)
  return op
}

/** `struct sock_fprog`: the number of instructions, padding, and the address of the first. */
function programHeader(bpf: Uint8Array) {
  const struct = new Uint8Array(16)
  new DataView(struct.buffer).setUint16(0, bpf.length / INSTRUCTION_BYTES, true)
  return { struct, pointers: [{ offset: 8, to: bpf }] }
}
