// pure
import type { RestartPolicy } from './branch.ts'

/** An argument of a planned system call. */
export type SpawnArg =
  | number
  | bigint
  /** Passed by address; the bytes may be written by the kernel. Strings end in NUL. */
  | Uint8Array
  /** The result (usually a descriptor) of an earlier entry that has this `store`. */
  | { readonly slot: string }
  /** A NULL-ended array of addresses (argv, envp). Every element must end in NUL. */
  | { readonly vector: readonly Uint8Array[] }
  /** A structure that holds addresses of other byte arrays (a `sock_fprog`), written before the clone. */
  | {
      readonly struct: Uint8Array
      readonly pointers: readonly { readonly offset: number; readonly to: Uint8Array }[]
    }
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
   * `arg` is the argument's index, `offset` the byte offset in its bytes (or `struct`), the value is written as a
   * 32-bit integer.
   */
  readonly patch?: readonly { readonly arg: number; readonly offset: number; readonly slot: string }[]
  /**
   * This very object is part of many plans and never changes, nor do the bytes of its arguments, which nobody writes: how
   * it is laid out in memory may be remembered. Not together with `patch`.
   */
  readonly kept?: true
}

export interface SpawnRequest {
  /**
   * A function is asked for the list while the kernel makes the child and its namespaces. Every descriptor that the list
   * names must be open before: the child has those of the moment in which it was born. When the function throws, the
   * child ends before its first entry.
   */
  readonly ops: readonly SpawnOp[] | (() => readonly SpawnOp[])
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
  /** A child that has not executed after so long is killed; a minute unless something else is said. */
  readonly patienceMillis?: number
}

export type SpawnResult =
  | { readonly ok: true; readonly pid: number; readonly pidfd: number }
  | {
      readonly ok: false
      readonly index: number
      readonly op: SpawnOp
      readonly result: number
      /** `E…`; `success` when a call should have failed; `SIG…` when a signal killed the child in this call. */
      readonly errnoName: string
    }

/**
 * What `native/init.c` and the daemon agree on.
 *
 * Arguments: `puzzled-init STATUS FLAGS ARGV0 [ARG...]`. STATUS is the number of the descriptor that takes the records
 * below; FLAGS is `t` when the agent takes descriptor 0 as its controlling terminal, else `-`, and behind it what
 * `initFlags` says of further starts. The environment is handed on untouched. ARGV0 without a slash is looked up in the environment's PATH, as `execvp` does.
 *
 * The agent starts in a session of its own with default signal dispositions and an empty mask; no descriptor above 2
 * reaches it. init forwards TERM, INT, HUP, QUIT, USR1, USR2 and WINCH to the agent's process group, reaps, and ends
 * when the agent has ended. When it is not PID 1 (an exec into a running branch: it stays outside the PID namespace
 * that its child is born in) it does the same for its one child.
 *
 * An agent that is to be started again after it has ended is, unless one of TERM, INT, HUP and QUIT was handed on to it
 * since its last start or ended it. Before that, init (only as PID 1) ends everything else in the namespace, and pauses until
 * that is gone and 100 ms are over, then twice as long each time up to a minute; after a run of ten seconds 100 ms again. One
 * of those signals in a pause is the end. With a terminal the agent is then a process group in init's session and does not lead it;
 * when TSTP, TTIN or TTOU stop it, init has it go on. Before each start the terminal has the modes that it had first, and the
 * descriptors 0, 1 and 2 the status flags.
 *
 * Each record is 8 bytes, native byte order: `u32 kind, i32 value`.
 */
export const INIT_RECORD_BYTES = 8
export const INIT_RECORDS = {
  /** The agent runs, or runs again; the value is its pid inside the namespace. */
  started: 1,
  /** `execve` failed; the value is errno (ENOENT: nothing in PATH either). No other record follows. */
  execFailed: 2,
  /** The agent ended; the value is the status as `wait4` gives it. Always the last record. */
  ended: 3,
  /** What the agent and its reaped children used, right before `ended`: CPU time in milliseconds, peak memory of one process. */
  userMillis: 4,
  systemMillis: 5,
  maxRssKiB: 6,
  /** So many milliseconds of pause begin, with `again` right behind it; 0: the pause is over. */
  pauseMillis: 7,
  /** The agent ended with this status, and is started again. */
  again: 8,
} as const

/** FLAGS of init. */
export const initFlags = (terminal: boolean, restart: RestartPolicy | null): string =>
  `${terminal ? 't' : '-'}${restart === null ? '' : `${restart.when === 'always' ? 'a' : 'f'}${restart.times ?? ''}`}`
