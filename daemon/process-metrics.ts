import type { EventLoopUtilization } from 'node:perf_hooks'
import { MetricsEndpoint } from './metrics/endpoint.ts'
import type { Registry } from './metrics/registry.ts'

/** Adds what the daemon says about its own process, and offers all of it on a socket. */
export async function serveMetrics(
  registry: Registry,
  options: { version: string; socket: string; port: number | null; gid: number | null },
): Promise<MetricsEndpoint> {
  registry.set('puzzled_build', 1, { version: options.version })
  registry.set('process_start_time_seconds', Math.round(performance.timeOrigin) / 1000)
  let seen: EventLoopUtilization = performance.eventLoopUtilization()
  registry.beforeText(() => {
    const { user, system } = process.cpuUsage()
    registry.set('process_cpu_seconds', (user + system) / 1e6)
    registry.set('process_resident_memory_bytes', process.memoryUsage.rss())
    const now = performance.eventLoopUtilization()
    registry.set('puzzled_event_loop_busy_ratio', performance.eventLoopUtilization(now, seen).utilization)
    seen = now
  })
  return MetricsEndpoint.open(options, () => registry.text())
}
