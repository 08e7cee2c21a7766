import { readFileSync } from 'node:fs'
import { errnoOf, PuzzledError } from './errors.ts'

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

export async function readConfig(path: string): Promise<Config> {
  let text: string
  try {
    // At once: it is small, and in a command this would be what starts the threads of the pool.
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' && path === CONFIG_PATH) return defaultConfig()
    throw new PuzzledError('config-invalid', `Cannot read "${path}"`, { cause: error })
  }
  // Parser and schema are loaded where there is something to read: most commands have no file.
  const { parseConfig } = await import('./config-schema.ts')
  return parseConfig(text, path)
}
