import { KernelError, syscall, trySyscall } from './ffi.ts'
import { ASK, rulesetAttr } from './landlock-abi.ts'

// The number is the same on every architecture. Rules and the restriction itself are entries of the spawn plan: they
// must be made by the child, inside its new root.
const NR_CREATE_RULESET = 444

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
