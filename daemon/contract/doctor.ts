// pure
import type { ErrorCode } from './errors.ts'
import type { FeatureName, FeatureRow } from './features.ts'

/** What `puzzlectl doctor --json` prints; described in docs/doctor.md. */
export interface DoctorReport {
  /** Of this form; a number that grows only when something is taken away. */
  readonly version: 1
  readonly host: {
    readonly kernel: string
    readonly architecture: string
    readonly node: string
    readonly uid: number
    /** Why this root is none: a container, capabilities that are missing. */
    readonly problem: DoctorProblem | null
  }
  readonly state: {
    readonly path: string
    /** False: it will be made by the first branch, on the filesystem of the nearest directory above it. */
    readonly exists: boolean
    readonly filesystem: string | null
    readonly problem: DoctorProblem | null
  }
  readonly features: readonly FeatureRow[]
  /** Agents can be started here. False when a feature of `ESSENTIAL` is missing or something has a problem. */
  readonly ready: boolean
}

export interface DoctorProblem {
  readonly code: ErrorCode
  readonly message: string
  readonly hint: string | null
}

/** Without one of these no agent is ever started; everything else is up to the profile. */
export const ESSENTIAL: readonly FeatureName[] = ['seccomp', 'overlay', 'netns', 'pidfd']
