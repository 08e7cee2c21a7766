// pure
import type { FeatureName } from './features.ts'

/**
 * A profile after inheritance and defaults: what the planners read. `policy/profile.ts` holds the YAML schema that
 * yields it. Every grant carries `why`.
 */
export interface Profile {
  name: string
  description: string
  enforce: 'enforce' | 'shadow'
  mounts: readonly MountGrant[]
  /** `private`: empty tmpfs; `overlay`: copy-on-write view of the real one, committed like a base; `hidden`: absent. */
  home: 'private' | 'overlay' | 'hidden'
  environment: { pass: readonly string[]; set: Readonly<Record<string, string>> }
  exec: { allow: readonly PathGrant[] | 'any'; deny: readonly PathGrant[] }
  seccomp: 'strict' | 'standard' | 'build'
  landlock: { read: readonly PathGrant[]; write: readonly PathGrant[] }
  namespaces: { time: boolean }
  network: NetworkProfile
  budgets: Budgets
  resources: Resources
  gate: GateSettings
  require: readonly FeatureName[]
  prefer: readonly FeatureName[]
  rlimits: Readonly<Partial<Record<'nofile' | 'fsize' | 'stack' | 'nproc' | 'memlock', number>>>
}

export interface MountGrant {
  /** Absolute path on the host; seen at the same path inside. */
  path: string
  mode: 'ro' | 'rw-overlay' | 'hidden'
  optional: boolean
  why: string
}

export interface PathGrant {
  path: string
  why: string
}

export type RequestClass = 'live' | 'read' | 'queue' | 'deny'

export interface NetworkProfile {
  mode: 'none' | 'gated' | 'open-read'
  rules: readonly NetworkRule[]
  expose: readonly { host: string; port: number; why: string }[]
  /** Ports besides 80 and 443 that are redirected to the proxy. */
  ports: readonly number[]
  replay: 'after-files' | 'before-files'
  credentials: readonly CredentialGrant[]
}

export interface NetworkRule {
  id: string
  /** Exact names or `*.example.com` (at least two labels behind the star). */
  hosts: readonly string[]
  ports: readonly number[]
  methods: readonly string[] | 'any'
  /** Globs over the decoded path. */
  paths: readonly string[] | 'any'
  class: RequestClass
  /** POST bodies on these paths are reads (GraphQL queries, JSON-RPC reads). */
  readBody?: 'graphql' | 'json-rpc'
  /** Globs of JSON-RPC methods that are reads; without it no JSON-RPC call is one. */
  readMethods?: readonly string[]
  /** Addresses or CIDRs outside the public ranges that these hosts may resolve to. Metadata services never. */
  addresses?: readonly string[]
  tls: 'intercept' | 'tunnel'
  budget: { requests?: number; bytes?: number }
  /** Request headers that may leave; undefined = the default list. */
  headers?: readonly string[]
  why: string
}

export interface CredentialGrant {
  placeholder: string
  source:
    | { kind: 'file'; path: string }
    | { kind: 'environment'; name: string }
    | { kind: 'systemd'; name: string }
    | { kind: 'command'; argv: readonly string[] }
  hosts: readonly string[]
  header?: string
  query?: string
  why: string
}

export const BUDGET_KINDS = [
  'wall',
  'cpu',
  'memory',
  'pids',
  'disk',
  'inodes',
  'exec',
  'egress',
  'requests',
  'queued',
  'deletions',
] as const
export type BudgetKind = (typeof BUDGET_KINDS)[number]

/** Less memory than this does not carry an agent through its start: the kernel would end it in the middle. */
export const SMALLEST_MEMORY = 16 * 1024 ** 2

/** Limits in base units (seconds, bytes, counts); absent = unlimited. */
export interface Budgets {
  limits: Readonly<Partial<Record<BudgetKind, number>>>
  atLimit: 'freeze' | 'kill'
}

export const RESOURCE_KINDS = [
  'cpus',
  'cpuWeight',
  'memoryHigh',
  'ioWeight',
  'ioRead',
  'ioWrite',
  'ioReadOps',
  'ioWriteOps',
] as const
export type ResourceKind = (typeof RESOURCE_KINDS)[number]

/**
 * How fast a branch may use the machine up, held by the kernel (cgroup v2): processors, shares (1 to 10000), bytes, and
 * bytes or operations per second. Absent = no limit of its own. What it may use up in total is a budget.
 */
export type Resources = Readonly<Partial<Record<ResourceKind, number>>>

export interface GateSettings {
  /** What a nonzero exit of the agent leads to at most. */
  onAgentFailure: 'hold' | 'gate'
  allowSetuid: boolean
  maxFiles: number
  maxBytes: number
  maxDeletions: number
  /** Extra policies by name (installed `*.wasm`). */
  policies: readonly string[]
  /** Globs of absolute targets that always need a person. */
  holdPaths: readonly PathGrant[]
  /** Globs of absolute targets that are refused. */
  denyPaths: readonly PathGrant[]
}
