import type { PolicyVersion } from './verdict.ts'

/** One policy as the gate holds it: checked to be a module, compiled by whoever evaluates it. */
export interface LoadedPolicy extends PolicyVersion {
  /** Where it came from, for people. */
  file: string
  bytes: Uint8Array
  /** Default: the only one that the module has. */
  entrypoint?: string
}

export interface ScanItem {
  change: number
  path: Uint8Array
  content: Uint8Array
  complete: boolean
  old?: Uint8Array
}

/** The policies; their modules follow in the same order. */
export interface StartMessage {
  kind: 'start'
  memoryPages: number
  policies: readonly { name: string; file: string; entrypoint: string | null; bytes: number }[]
}

/** The input document follows. */
export interface EvaluateMessage {
  kind: 'evaluate'
  id: number
}

/** Of every item its path, its content and its old content follow; -1: there is none. */
export interface ScanMessage {
  kind: 'scan'
  id: number
  items: readonly { complete: boolean; path: number; content: number; old: number }[]
}

/** All policies together answer at most this much; the longest honest answer is a tenth of it. */
export const MAX_REPLY_BYTES = 32 * 1024 * 1024

/** From the daemon to a worker. What comes back is in `gate-replies.ts`. */
export type GateMessage = StartMessage | EvaluateMessage | ScanMessage
