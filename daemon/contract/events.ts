// pure
import type { AgentAgain } from './branch.ts'
import type { DenialRow } from './denial.ts'
import type { BranchState } from './states.ts'
import type { VerdictKind } from './verdict.ts'

export type PuzzledEvent =
  | { kind: 'state'; branch: string; time: string; from: BranchState; to: BranchState; reason: string }
  | { kind: 'verdict'; branch: string; time: string; verdict: VerdictKind; digest: string }
  | {
      kind: 'approval'
      branch: string
      time: string
      decision: 'approve' | 'reject'
      by: number
      digest: string
    }
  | ({ kind: 'denial'; branch: string } & DenialRow)
  | {
      kind: 'budget'
      branch: string
      time: string
      budget: string
      used: number
      limit: number
      percent: number
    }
  | ({ kind: 'restart'; branch: string; time: string } & AgentAgain)
  | { kind: 'request'; branch: string; time: string; id: string; state: string; method: string; host: string }
  | { kind: 'commit'; branch: string; time: string; commit: string; digest: string }
  | { kind: 'warning'; branch: string; time: string; message: string }
