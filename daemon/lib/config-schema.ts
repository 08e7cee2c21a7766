import { LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import type { Config } from './config.ts'
import { PuzzledError } from './errors.ts'

const duration = z
  .string()
  .regex(/^\d+[smhd]$/, 'a duration such as 30s, 15m, 12h or 7d')
  .transform((text) => Number(text.slice(0, -1)) * (SECONDS[text.slice(-1)] ?? 1))
const size = z
  .string()
  .regex(/^\d+[kMGT]?$/, 'a size such as 500M or 10G')
  .transform((text) => Number.parseInt(text, 10) * (BYTES[/[kMGT]$/.exec(text)?.[0] ?? ''] ?? 1))

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }
const BYTES: Readonly<Record<string, number>> = { '': 1, k: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

/** `/etc/puzzled/puzzled.yaml`. Everything has a default; an unknown key is an error. */
export const configSchema = z.strictObject({
  state_dir: z
    .string()
    .startsWith('/')
    .default('/var/lib/puzzled')
    .describe(
      'The store: branches, journal, queue, audit log. On ext4, XFS, btrfs or another local filesystem.',
    ),
  runtime_dir: z
    .string()
    .startsWith('/')
    .default('/run/puzzled')
    .describe('Sockets of the terminals of agents. Gone after a reboot.'),
  bus: z
    .enum(['system', 'session'])
    .default('system')
    .describe('The message bus to serve on. session is for trying things out.'),
  groups: z
    .strictObject({
      users: z
        .string()
        .default('puzzled')
        .describe('Members run agents and manage branches of their own. Asked where no polkit runs.'),
      reviewers: z
        .string()
        .default('puzzled-reviewers')
        .describe('Members see every branch and decide about held changesets. Asked where no polkit runs.'),
    })
    .prefault({})
    .describe('Groups of the system, by name.'),
  retention: z
    .strictObject({
      commits: z.int().min(0).default(100).describe('So many of the newest commits can be reverted.'),
      age: duration.prefault('30d').describe('Commits older than this can no longer be reverted.'),
      bytes: size.prefault('10G').describe('The old versions that reverts need may take so much space.'),
    })
    .prefault({})
    .describe('What `puzzlectl gc` keeps: a commit must be within all three limits.'),
  audit: z
    .strictObject({
      age: duration
        .nullable()
        .default(null)
        .describe('Segments that were last written to longer ago are moved.'),
      bytes: size
        .nullable()
        .default(null)
        .describe('The oldest segments are moved until the others are smaller.'),
    })
    .prefault({})
    .describe(
      'What `puzzlectl gc` leaves in the audit log; null is no limit. Older segments go to `audit/archive` in the store, where they are yours: nothing removes them. The newest two stay.',
    ),
  queues: z
    .strictObject({
      per_user: size.prefault('4G').describe('Of all branches of one user together.'),
      all: size.prefault('16G').describe('Of all branches of the store.'),
    })
    .prefault({})
    .describe('Disk that requests which wait for their commit may take. An agent is answered 429 beyond it.'),
  metrics: z
    .strictObject({
      socket: z
        .boolean()
        .default(true)
        .describe(
          '`metrics.sock` in the runtime directory, in the format of Prometheus, for root and the reviewers.',
        ),
      loopback_port: z
        .int()
        .min(1)
        .max(65_535)
        .nullable()
        .default(null)
        .describe('The same on this port of 127.0.0.1, for everybody on this machine. null: not at all.'),
    })
    .prefault({})
    .describe('Numbers about the daemon: what happens, how often, how long it takes.'),
})

/** Refuses with file, line, what was found and what was expected. */
export function parseConfig(text: string, path: string): Config {
  const lines = new LineCounter()
  const document = parseDocument(text, { version: '1.2', uniqueKeys: true, lineCounter: lines })
  const [syntax] = document.errors
  if (syntax !== undefined) {
    const { line, col } = lines.linePos(syntax.pos[0])
    throw new PuzzledError('config-invalid', `${path}:${line}:${col}: ${syntax.message.split('\n')[0]}`)
  }
  const result = configSchema.safeParse(document.toJS() ?? {})
  if (result.success) return result.data
  const [issue] = result.error.issues
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const keys = [...(issue?.path ?? []), ...(unknown === undefined ? [] : [unknown])]
  const node = document.getIn(keys.slice(0, unknown === undefined ? undefined : -1), true)
  const offset = (node as { range?: readonly number[] } | undefined)?.range?.[0] ?? 0
  const { line, col } = lines.linePos(offset)
  throw new PuzzledError(
    'config-invalid',
    `${path}:${line}:${col}: ${keys.join('.')}: ${issue?.message ?? 'is not valid'}`,
    {
      hint: `Known keys: ${Object.keys(configSchema.shape).join(', ')}; see puzzled.yaml(5).`,
    },
  )
}
