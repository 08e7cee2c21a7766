import type { Engine } from '../daemon/contract/engine.ts'
import { connectEngine } from './engine.ts'

export type { AgentExit, BranchRecord, Grant, Requester } from '../daemon/contract/branch.ts'
export type { Change, Changeset, NodeState } from '../daemon/contract/changeset.ts'
export type {
  AgentSession,
  ApprovalRequest,
  BranchSummary,
  Engine,
  Outcome,
  RunRequest,
} from '../daemon/contract/engine.ts'
export type { ErrorCode } from '../daemon/contract/errors.ts'
export { ERRORS, exitStatusOf } from '../daemon/contract/errors.ts'
export type { PuzzledEvent } from '../daemon/contract/events.ts'
export type { Profile } from '../daemon/contract/profile.ts'
export type { BranchState } from '../daemon/contract/states.ts'
export type { Finding, Verdict } from '../daemon/contract/verdict.ts'
export { PuzzledError } from '../daemon/lib/errors.ts'
export { runRequest } from './request.ts'

export interface ConnectOptions {
  /** A store to open in this process. Without one, the daemon is asked if it answers on the bus. */
  stateDir?: string
}

/**
 * The engine that `puzzlectl` would use: the daemon's, or where none runs the same engine in this process, which needs
 * root. Close it at the end: this process holds the store, or a connection, until then.
 */
export const connect = ({ stateDir }: ConnectOptions = {}): Promise<Engine> => connectEngine(stateDir ?? null)
