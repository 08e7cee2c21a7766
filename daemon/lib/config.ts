import { readFile } from 'node:fs/promises'
import { LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { errnoOf, PuzzledError } from './errors.ts'

export const CONFIG_PATH = '/etc/puzzled/puzzled.yaml'
/** In the runtime directory. */
export const METRICS_SOCKET = 'metrics.sock'

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
const schema = z.strictObject({
  state_dir: z.string().startsWith('/').default('/var/lib/puzzled'),
  runtime_dir: z.string().startsWith('/').default('/run/puzzled'),
  bus: z.enum(['system', 'session']).default('system'),
  groups: z
    .strictObject({
      users: z.string().default('puzzled'),
      reviewers: z.string().default('puzzled-reviewers'),
    })
    .prefault({}),
  retention: z
    .strictObject({
      commits: z.int().min(0).default(100),
      age: duration.prefault('30d'),
      bytes: size.prefault('10G'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      /** `RUNTIME_DIR/metrics.sock`, for root and the reviewers. */
      socket: z.boolean().default(true),
      /** Without rights: everybody on this machine can read it. */
      loopback_port: z.int().min(1).max(65_535).nullable().default(null),
    })
    .prefault({}),
})

export type Config = z.infer<typeof schema>

/** The defaults, where there is no file. */
export const defaultConfig = (): Config => schema.parse({})

export async function readConfig(path: string): Promise<Config> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' && path === CONFIG_PATH) return defaultConfig()
    throw new PuzzledError('config-invalid', `Cannot read "${path}"`, { cause: error })
  }
  return parseConfig(text, path)
}

/** Refuses with file, line, what was found and what was expected. */
export function parseConfig(text: string, path: string): Config {
  const lines = new LineCounter()
  const document = parseDocument(text, { version: '1.2', uniqueKeys: true, lineCounter: lines })
  const [syntax] = document.errors
  if (syntax !== undefined) {
    const { line, col } = lines.linePos(syntax.pos[0])
    throw new PuzzledError('config-invalid', `${path}:${line}:${col}: ${syntax.message.split('\n')[0]}`)
  }
  const result = schema.safeParse(document.toJS() ?? {})
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
      hint: `Known keys: ${Object.keys(schema.shape).join(', ')}; see puzzled.yaml(5).`,
    },
  )
}
