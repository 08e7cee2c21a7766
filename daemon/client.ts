/** The public TypeScript surface of the package: types of the contract, and `connect()` once an engine is built in. */
export type { Change, Changeset, NodeState } from './contract/changeset.ts'
export type { ErrorCode } from './contract/errors.ts'
export { ERRORS, exitStatusOf } from './contract/errors.ts'
export type { PuzzledEvent } from './contract/events.ts'
export type { Profile } from './contract/profile.ts'
export type { BranchState } from './contract/states.ts'
export type { Finding, Verdict } from './contract/verdict.ts'
export { PuzzledError } from './lib/errors.ts'
