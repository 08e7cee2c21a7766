import { type EventLoopUtilization, monitorEventLoopDelay } from 'node:perf_hooks'
import { type EndpointOptions, MetricsEndpoint } from './metrics/endpoint.ts'
import type { Registry } from './metrics/registry.ts'

/** Seldom enough to cost an idle daemon nothing that could be measured. */
const DELAY_MILLIS = 100

/** Adds what the daemon says about its own process, and offers all of it on a socket. */
export async function serveMetrics(
  registry: Registry,
  options: EndpointOptions & { version: string },
): Promise<MetricsEndpoint> {
  registry.set('puzzled_build', 1, { version: options.version })
  registry.set('process_start_time_seconds', Math.round(performance.timeOrigin) / 1000)
  const delay = monitorEventLoopDelay({ resolution: DELAY_MILLIS })
  delay.enable()
  let seen: EventLoopUtilization = performance.eventLoopUtilization()
  registry.beforeText(() => {
    const { user, system } = process.cpuUsage()
    registry.set('process_cpu_seconds', (user + system) / 1e6)
    registry.set('process_resident_memory_bytes', process.memoryUsage.rss())
    const now = performance.eventLoopUtilization()
    registry.set('puzzled_event_loop_busy_ratio', performance.eventLoopUtilization(now, seen).utilization)
    seen = now
    // What it measures holds the time between two of its own looks.
    registry.set('puzzled_event_loop_delay_seconds', Math.max(0, delay.max / 1e9 - DELAY_MILLIS / 1000))
    delay.reset()
  })
  return MetricsEndpoint.open(options, () => registry.text())
}
