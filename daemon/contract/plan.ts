// pure

/** One system call of a start, for people and programs. */
export interface PlanStep {
  /** From 1, as error messages count. */
  step: number
  /** Chapter of docs/spawn.md. */
  section: string
  name: string
  call: string
  /** As strace would write them; descriptors that exist only at run time by name. */
  args: readonly string[]
  /** `ok`, or the errno with which it must fail. */
  expect: string
}

/** What would happen if the command were run now, on this host. Nothing is done to find out. */
export interface ExplainedPlan {
  profile: string
  command: readonly string[]
  namespaces: readonly string[]
  steps: readonly PlanStep[]
  grants: readonly { what: string; requested: string; granted: string; full: boolean }[]
}
