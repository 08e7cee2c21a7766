// pure

/** What a filter answers. An errno answer never reaches the kernel's own code for that system call. */
export type FilterAction = 'allow' | 'notify' | 'kill' | { readonly errno: number }

/** One comparison of an argument. `low` compares the low 32 bits, as the kernel does for an `int` argument. */
export type Condition =
  | { readonly arg: number; readonly op: 'ne' | 'eq' | 'gt'; readonly value: number }
  | { readonly arg: number; readonly op: 'low'; readonly value: number }
  | { readonly arg: number; readonly op: 'masked'; readonly mask: number; readonly value: number }

export interface FilterRule {
  /** Number on the running architecture. */
  readonly number: number
  readonly action: FilterAction
  /** All must hold; each argument at most once. Empty: always. */
  readonly when: readonly Condition[]
}

/** A filter before it is compiled. System calls of another ABI (x32, i386) always end the process. */
export interface FilterSource {
  readonly name: string
  /** For every system call without a rule that applies. Must differ from every rule's action. */
  readonly fallback: FilterAction
  readonly rules: readonly FilterRule[]
  /** The kernel's audit system hears of what it refuses. */
  readonly logged?: boolean
}
