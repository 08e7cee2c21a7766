import type { EventStream } from './agent/event-stream.ts'
import type { LocalEngine } from './agent/local-engine.ts'
import { countEvent } from './agent/measure.ts'
import type { Events } from './agent/ports.ts'
import type { Registry } from './metrics/registry.ts'
import type { NetworkCounters } from './network/branch-queue.ts'
import type { NetworkParts } from './network-parts.ts'

/** Every event passes by the metrics. */
export const counting = (stream: EventStream, metrics: Registry): Events => ({
  publish: (event) => {
    countEvent(metrics, event)
    stream.publish(event)
  },
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
