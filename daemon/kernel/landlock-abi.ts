// pure

/**
 * What each Landlock ABI brings (linux/landlock.h). The kernel never takes a right back, so a ruleset for ABI n is
 * everything with `abi <= n`. Numbers that are not known here are treated as the newest known ABI.
 */
export interface LandlockRight {
  readonly name: string
  readonly bit: bigint
  readonly abi: number
  /** May stand in a rule on a file; the others are for directories only (EINVAL otherwise). */
  readonly onFiles?: boolean
}

const right = (name: string, shift: number, abi: number, onFiles = false): LandlockRight => ({
  name,
  bit: 1n << BigInt(shift),
  abi,
  onFiles,
})

export const FS_RIGHTS = [
  right('EXECUTE', 0, 1, true),
  right('WRITE_FILE', 1, 1, true),
  right('READ_FILE', 2, 1, true),
  right('READ_DIR', 3, 1),
  right('REMOVE_DIR', 4, 1),
  right('REMOVE_FILE', 5, 1),
  right('MAKE_CHAR', 6, 1),
  right('MAKE_DIR', 7, 1),
  right('MAKE_REG', 8, 1),
  right('MAKE_SOCK', 9, 1),
  right('MAKE_FIFO', 10, 1),
  right('MAKE_BLOCK', 11, 1),
  right('MAKE_SYM', 12, 1),
  right('REFER', 13, 2),
  right('TRUNCATE', 14, 3, true),
  right('IOCTL_DEV', 15, 5, true),
  right('RESOLVE_UNIX', 16, 9, true),
] as const

export const NET_RIGHTS = [right('BIND_TCP', 0, 4), right('CONNECT_TCP', 1, 4)] as const

export const SCOPES = [right('ABSTRACT_UNIX_SOCKET', 0, 6), right('SIGNAL', 1, 6)] as const

/**
 * Flags of `landlock_restrict_self`: by default what happens before the first exec is logged, and nothing after it. Before
 * it are our own tries of whether the rules hold.
 */
export const RESTRICT_FLAGS = [right('LOG_SAME_EXEC_OFF', 0, 7), right('LOG_NEW_EXEC_ON', 1, 7)] as const

export const NEWEST_ABI = 9

/** `landlock_rule_type`. */
export const RULE = { PATH_BENEATH: 1, NET_PORT: 2 } as const

/** `landlock_create_ruleset` flags that ask instead of create. */
export const ASK = { VERSION: 1, ERRATA: 2 } as const

/** The bits of all rights that this ABI has; `only` narrows to names. */
export function rightsOf(table: readonly LandlockRight[], abi: number, only?: readonly string[]): bigint {
  return table
    .filter((entry) => entry.abi <= abi && (only === undefined || only.includes(entry.name)))
    .reduce((bits, entry) => bits | entry.bit, 0n)
}

/** `struct landlock_ruleset_attr`, as long as this ABI knows it: older kernels refuse a longer one (E2BIG). */
export function rulesetAttr(abi: number, fs: bigint, net: bigint, scoped: bigint): Uint8Array {
  const bytes = new Uint8Array(abi >= 6 ? 24 : abi >= 4 ? 16 : 8)
  const view = new DataView(bytes.buffer)
  for (const [index, value] of [fs, net, scoped].entries())
    if (bytes.length >= 8 * (index + 1)) view.setBigUint64(8 * index, value, true)
  return bytes
}

/** `struct landlock_path_beneath_attr` (packed); the descriptor at offset 8 is patched in by the spawn plan. */
export function pathBeneathAttr(allowed: bigint, descriptor = -1): Uint8Array {
  const bytes = new Uint8Array(12)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, allowed, true)
  view.setInt32(8, descriptor, true)
  return bytes
}

export const PATH_BENEATH_DESCRIPTOR_OFFSET = 8

/** `struct landlock_net_port_attr`. */
export function netPortAttr(allowed: bigint, port: number): Uint8Array {
  const bytes = new Uint8Array(16)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, allowed, true)
  view.setBigUint64(8, BigInt(port), true)
  return bytes
}
