import { KernelError, syscall, trySyscall } from './ffi.ts'
import { ASK, netPortAttr, pathBeneathAttr, RULE, rulesetAttr } from './landlock-abi.ts'

// The numbers are the same on every architecture (they are newer than the common table).
const NR_CREATE_RULESET = 444
const NR_ADD_RULE = 445
const NR_RESTRICT_SELF = 446

/** The ABI of the running kernel; 0 when it was built without Landlock or booted without it in `lsm=`. */
export function landlockAbi(): number {
  // SAFETY: a query: no pointer, no effect.
  const result = trySyscall(NR_CREATE_RULESET, null, 0, ASK.VERSION)
  if (result >= 0) return result
  const error = new KernelError('landlock_create_ruleset', -result)
  if (error.errnoName === 'ENOSYS' || error.errnoName === 'EOPNOTSUPP') return 0
  throw error
}

/** Numbers of the mended faults of the Landlock in this kernel; empty before ABI 7, where it cannot be asked. */
export function landlockErrata(): readonly number[] {
  // SAFETY: a query: no pointer, no effect.
  const bits = trySyscall(NR_CREATE_RULESET, null, 0, ASK.ERRATA)
  if (bits < 0) return []
  return Array.from({ length: 31 }, (_, index) => index + 1).filter((n) => (bits & (1 << (n - 1))) !== 0)
}

/** A ruleset of the calling process; the descriptor is the caller's to close. */
export function createRuleset(abi: number, handled: { fs: bigint; net: bigint; scoped: bigint }): number {
  const attr = rulesetAttr(abi, handled.fs, handled.net, handled.scoped)
  // SAFETY: `attr` outlives the synchronous call and its own length is passed with it.
  return syscall('landlock_create_ruleset', NR_CREATE_RULESET, attr, attr.length, 0)
}

/** `descriptor` may be O_PATH; the rule holds for what is mounted there now. */
export function allowBeneath(ruleset: number, descriptor: number, allowed: bigint): void {
  // SAFETY: the structure is read during the synchronous call only.
  syscall(
    'landlock_add_rule',
    NR_ADD_RULE,
    ruleset,
    RULE.PATH_BENEATH,
    pathBeneathAttr(allowed, descriptor),
    0,
  )
}

export function allowPort(ruleset: number, port: number, allowed: bigint): void {
  // SAFETY: the structure is read during the synchronous call only.
  syscall('landlock_add_rule', NR_ADD_RULE, ruleset, RULE.NET_PORT, netPortAttr(allowed, port), 0)
}

/**
 * Restricts the calling *thread* and what it starts, for ever. In Node this is right only for a process that was made
 * for it (a test, a helper about to exec): other threads of the process stay as they were.
 */
export function restrictSelf(ruleset: number, flags = 0): void {
  // SAFETY: no pointer. The effect cannot be undone; see above.
  syscall('landlock_restrict_self', NR_RESTRICT_SELF, ruleset, flags)
}
