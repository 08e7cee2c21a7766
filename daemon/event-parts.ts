import type { EventStream } from './agent/event-stream.ts'
import type { LocalEngine } from './agent/local-engine.ts'
import { countEvent } from './agent/measure.ts'
import type { Auditor, Events } from './agent/ports.ts'
import type { AuditLog } from './audit/log.ts'
import type { PuzzledEvent } from './contract/events.ts'
import { DenialFiles } from './denial-files.ts'
import { JournalSink } from './journal-sink.ts'
import { KernelDenials } from './kernel-denials.ts'
import type { Registry } from './metrics/registry.ts'
import type { NetworkCounters } from './network/branch-queue.ts'
import type { NetworkParts } from './network-parts.ts'
import type { Launcher } from './sandbox/launch.ts'

/** Somebody who hears of everything. Must neither wait nor fail: what happens goes on. */
export interface Listener {
  take(event: PuzzledEvent): void
}

export interface Listening {
  readonly events: Events
  readonly denials: DenialFiles
  readonly heard: KernelDenials
  readonly journal: JournalSink | null
  readonly complain: Complain
}

type Complain = (branch: string) => (error: unknown) => void

/** Where events go, in this order: the counters, the branch's own list, the journal, whoever follows. */
export function openListeners(
  stream: EventStream,
  metrics: Registry,
  directoryOf: (id: string) => string,
): Listening {
  const complain: Complain = (branch) => (error) =>
    events.publish({ kind: 'warning', branch, time: new Date().toISOString(), message: String(error) })
  const denials = new DenialFiles(directoryOf, complain)
  const journal = JournalSink.find()
  const counted: Listener = { take: (event) => countEvent(metrics, event) }
  const listeners = [counted, denials, ...(journal === null ? [] : [journal]), stream]
  const events: Events = {
    publish: (event) => {
      for (const listener of listeners) listener.take(event)
    },
  }
  const heard = new KernelDenials({ publish: events.publish, count: networkCounters(metrics).denied })
  return { events, denials, heard, journal, complain }
}

/** The log first: the journal hears of what is on disk. */
export const auditing = (log: AuditLog, journal: JournalSink | null): Auditor => ({
  record: async (kind, branch, facts) => {
    const seq = await log.append(kind, branch, facts)
    journal?.audit(seq, kind, branch, facts)
  },
})

/** Agents that can read what they were refused. */
export const listing = (launcher: Launcher, denials: DenialFiles): Pick<Launcher, 'start' | 'sweep'> => ({
  start: (request) => launcher.start({ ...request, denials: denials.prepare(request.record.id) }),
  sweep: (id) => launcher.sweep(id),
})

export const networkCounters = (metrics: Registry): NetworkCounters => ({
  denied: (layer, times) => metrics.count('puzzled_denials', { layer }, times),
  served: (kind, seconds) => metrics.observe('puzzled_proxy_request_seconds', seconds, { class: kind }),
})

/** What is cheaper to read when somebody looks than to follow. */
export function readBeforeText(metrics: Registry, engine: LocalEngine, network: NetworkParts): void {
  metrics.beforeText(() => {
    metrics.set('puzzled_agents', engine.running().length)
    const { out, in: into } = network.traffic()
    metrics.set('puzzled_proxy_bytes', out, { direction: 'out' })
    metrics.set('puzzled_proxy_bytes', into, { direction: 'in' })
  })
}
