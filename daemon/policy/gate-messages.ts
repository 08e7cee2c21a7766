import type { ContentScan } from './content-scan.ts'
import type { PolicyVersion } from './verdict.ts'
import type { CompiledModule } from './webassembly.ts'

/** One policy as a worker gets it: compiled once in the daemon, shared with every worker. */
export interface LoadedPolicy extends PolicyVersion {
  module: CompiledModule
  /** Default: the only one that the module has. */
  entrypoint?: string
}

export interface GateWorkerData {
  policies: readonly LoadedPolicy[]
  memoryPages: number
}

export interface ScanItem {
  change: number
  path: Uint8Array
  content: Uint8Array
  complete: boolean
  old?: Uint8Array
}

export type GateRequest =
  | { kind: 'evaluate'; id: number; input: ArrayBuffer }
  | { kind: 'scan'; id: number; items: readonly ScanItem[] }

export type GateReply =
  | { kind: 'ready' }
  | { kind: 'evaluated'; id: number; results: readonly ({ output: unknown } | { failure: string })[] }
  | { kind: 'scanned'; id: number; scans: readonly { change: number; scan: ContentScan }[] }
