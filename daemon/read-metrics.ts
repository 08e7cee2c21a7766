import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { CONFIG_PATH, METRICS_SOCKET } from './lib/config.ts'
import { errnoOf, PuzzledError } from './lib/errors.ts'
import { readConfig } from './lib/read-config.ts'

export interface MetricSample {
  name: string
  labels: Readonly<Record<string, string>>
  value: number
}

/** What the daemon that runs counts, as OpenMetrics text. */
export async function readMetrics(socket: string | null): Promise<string> {
  const socketPath = socket ?? join((await readConfig(CONFIG_PATH)).runtime_dir, METRICS_SOCKET)
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { socketPath, path: '/metrics', headers: { host: 'localhost' }, timeout: 5_000 }
      request(options, resolve).once('error', reject).end()
    })
    const body = await text(response)
    if (response.statusCode === 200 && body.endsWith('# EOF\n')) return body
    throw new PuzzledError('internal', `"${socketPath}" answers ${response.statusCode}: ${body.trim()}`)
  } catch (error) {
    throw explained(error, socketPath)
  }
}

function explained(error: unknown, socket: string): unknown {
  const errno = errnoOf(error)
  if (errno === 'EACCES' || errno === 'EPERM')
    return new PuzzledError('access-denied', `You may not read "${socket}"`, {
      hint: 'Root and the group puzzled-reviewers may.',
    })
  if (errno === undefined) return error
  return new PuzzledError('bus-gone', `No daemon offers metrics on "${socket}": ${errno}`, {
    cause: error,
    hint: 'Is it running (puzzlectl daemon status), and is metrics.socket on in puzzled.yaml?',
  })
}

/** The samples of our own daemon's text; not a reader for everybody's. */
export function samplesOf(openMetrics: string): MetricSample[] {
  const lines = openMetrics.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
    return {
      name,
      labels: Object.fromEntries(
        pairs.map(([, label, text]) => [label, text?.replace(/\\(.)/g, '$1') ?? '']),
      ),
      value: Number(value),
    }
  })
}
