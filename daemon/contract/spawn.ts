// pure

/** An argument of a planned system call. */
export type SpawnArg =
  | number
  | bigint
  /** Passed by address; the bytes may be written by the kernel. Strings end in NUL. */
  | Uint8Array
  /** The result (usually a descriptor) of an earlier entry that has this `store`. */
  | { readonly slot: string }
  | null

/**
 * One system call of the child between clone and exec. `native/spawn.c` runs the list in order and knows nothing
 * else. The first result that is not as expected ends the child and is reported with the entry's index and name.
 */
export interface SpawnOp {
  /** For people: `mount overlay on "/home/u/app"`. */
  readonly name: string
  /** The system call's name, for `explain` and errors. */
  readonly call: string
  readonly args: readonly SpawnArg[]
  /** `ok`: any result ≥ 0. `{errno}`: a door that must be locked. `any`: result is recorded only. */
  readonly expect: 'ok' | 'any' | { readonly errno: string }
  /** Keeps the result under this name for `slot` arguments of later entries. */
  readonly store?: string
  /**
   * Words inside a byte argument that receive a stored result before the call (a descriptor inside a struct).
   * `arg` is the argument's index, `offset` the byte offset, the value is written as a 32-bit integer.
   */
  readonly patch?: readonly { readonly arg: number; readonly offset: number; readonly slot: string }[]
}

export interface SpawnRequest {
  readonly ops: readonly SpawnOp[]
  /** CLONE_NEW* flags by name, e.g. `NEWNS`. */
  readonly namespaces: readonly (
    | 'NEWNS'
    | 'NEWPID'
    | 'NEWNET'
    | 'NEWIPC'
    | 'NEWUTS'
    | 'NEWCGROUP'
    | 'NEWTIME'
    | 'NEWUSER'
  )[]
  /** Descriptor of the cgroup v2 directory for CLONE_INTO_CGROUP. */
  readonly cgroupFd?: number
}

export type SpawnResult =
  | { readonly ok: true; readonly pid: number; readonly pidfd: number }
  | {
      readonly ok: false
      readonly index: number
      readonly op: SpawnOp
      readonly result: number
      readonly errnoName: string
    }
