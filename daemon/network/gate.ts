import type { Duplex } from 'node:stream'
import type { BranchAuthority } from './authority.ts'
import type { BudgetMeter } from './budget-meter.ts'
import type { Credential } from './credentials.ts'
import type { NetworkDenied } from './denial.ts'
import type { Hostname } from './hostname.ts'
import type { NetworkLimits } from './limits.ts'
import type { NameBook } from './name-book.ts'
import type { NameVerdict } from './name-guard.ts'
import type { RequestQueue } from './queue.ts'
import type { CompiledRules, Decision } from './request-rule.ts'
import type { Upstream } from './upstream.ts'

/** Everything that the parts of one branch's proxy share. */
export interface Gate {
  readonly rules: CompiledRules
  readonly limits: NetworkLimits
  readonly queue: RequestQueue
  readonly upstream: Upstream
  readonly authority: BranchAuthority
  readonly credentials: readonly Credential[]
  readonly names: NameBook
  readonly budget: BudgetMeter
  checkName(host: Hostname): NameVerdict
  denied(subject: string, denial: NetworkDenied): void
  queued(id: string, method: string, host: string): void
  /** A request was answered, whatever the answer was. */
  served(kind: Decision['class'], seconds: number): void
}

/** How a connection of the agent came and where it said that it goes: what every request in it is held against. */
export interface Arrival {
  readonly via: 'explicit' | 'connect' | 'transparent'
  /** Undefined for the explicit proxy, where each request says it. */
  readonly port: number | undefined
  /** From the CONNECT line, or read back from the synthetic address. */
  readonly host: Hostname | undefined
  readonly tls: boolean
  /** The name in the TLS handshake. */
  readonly sni: Hostname | undefined
}

export const EXPLICIT: Arrival = {
  via: 'explicit',
  port: undefined,
  host: undefined,
  tls: false,
  sni: undefined,
}

const arrivals = new WeakMap<Duplex, Arrival>()

export function markArrival(socket: Duplex, arrival: Arrival): void {
  arrivals.set(socket, arrival)
}

export const arrivalOf = (socket: Duplex): Arrival => arrivals.get(socket) ?? EXPLICIT
