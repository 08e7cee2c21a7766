// pure

export const CONFIG_PATH = '/etc/puzzled/puzzled.yaml'
/** In the runtime directory. */
export const METRICS_SOCKET = 'metrics.sock'

/** What `/etc/puzzled/puzzled.yaml` says. */
export interface Config {
  state_dir: string
  runtime_dir: string
  bus: 'system' | 'session'
  groups: { users: string; reviewers: string }
  /** `age` in seconds. */
  retention: { commits: number; age: number; bytes: number }
  /** What stays in the live audit log; null is no limit. `age` in seconds. */
  audit: { age: number | null; bytes: number | null }
  /** Bytes that the requests which wait may take. */
  queues: { per_user: number; all: number }
  metrics: { socket: boolean; loopback_port: number | null }
}

/** Where there is no file. The schema has the same defaults, and a test that says so. */
export const defaultConfig = (): Config => ({
  state_dir: '/var/lib/puzzled',
  runtime_dir: '/run/puzzled',
  bus: 'system',
  groups: { users: 'puzzled', reviewers: 'puzzled-reviewers' },
  retention: { commits: 100, age: 30 * 86_400, bytes: 10 * 1024 ** 3 },
  audit: { age: null, bytes: null },
  queues: { per_user: 4 * 1024 ** 3, all: 16 * 1024 ** 3 },
  metrics: { socket: true, loopback_port: null },
})
