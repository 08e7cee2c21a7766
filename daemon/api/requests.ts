import { z } from 'zod'
import type { Requester } from '../contract/branch.ts'
import { fromEntries } from '../contract/bus-values.ts'
import type { CommandRequest, CreateRequest, PickRequest, RunRequest } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'

/** Requests as callers send them. An unknown key is an error: a misspelt limit must not be no limit. */

const text = z.string().max(4096)
const path = text.startsWith('/')
/** As the kernel bounds them (MAX_ARG_STRLEN, and ARG_MAX for the usual stack): a prompt is an argument, too. */
const LONGEST_WORD = 131_071
const ALL_WORDS = 1 << 21
const words = z
  .array(z.string().max(LONGEST_WORD))
  .max(1 << 17)
  .refine((list) => list.reduce((sum, word) => sum + word.length + 1, 0) <= ALL_WORDS, {
    message: `arguments of at most ${ALL_WORDS} bytes together`,
  })

const create = z.strictObject({
  bases: z.array(path).min(1).max(64),
  profile: text.default('standard'),
  name: text.nullable().default(null),
  afterwards: z.enum(['gate', 'hold', 'discard']).default('gate'),
  command: words.min(1),
  cwd: path,
  budgets: z.record(z.string(), z.number().positive()).default({}),
})

const descriptor = z
  .int()
  .min(0)
  .max(1 << 20)
const stdio = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('pipes') }),
  z.strictObject({ kind: z.literal('inherit'), fds: z.tuple([descriptor, descriptor, descriptor]) }),
  z.strictObject({
    kind: z.literal('pty'),
    columns: z.int().min(1).max(65_535),
    rows: z.int().min(1).max(65_535),
    inherit: z.tuple([descriptor.nullable(), descriptor.nullable(), descriptor.nullable()]),
  }),
])

const restart = z.strictObject({
  when: z.enum(['on-failure', 'always']),
  times: z.int().min(1).max(10_000).nullable(),
})

const run = create.extend({
  unattended: z.boolean().default(false),
  environment: z.record(z.string(), z.string()).default({}),
  setEnvironment: z.record(z.string(), z.string()).default({}),
  stdio: stdio.default({ kind: 'pipes' }),
  restart: restart.nullable().default(null),
})

/** Each is left out, not nothing: a limit that is not one must not be none. */
const limits = z.strictObject({
  memory: z.exactOptional(z.int().min(1)),
  pids: z.exactOptional(z.int().min(1)),
  cpus: z.exactOptional(z.number().positive()),
})

const command = z.strictObject({
  command: words.min(1),
  cwd: path.nullable().default(null),
  environment: z.record(z.string(), z.string()).default({}),
  setEnvironment: z.record(z.string(), z.string()).default({}),
  stdio: stdio.default({ kind: 'pipes' }),
  timeout: z.number().nullable().default(null),
  limits: limits.default({}),
})

export const createRequestOf = (entries: unknown, requester: Requester): CreateRequest => ({
  ...parse(create, entries),
  requester,
})

export const runRequestOf = (entries: unknown, requester: Requester): RunRequest => ({
  ...parse(run, entries),
  requester,
})

export const commandRequestOf = (entries: unknown): CommandRequest => parse(command, entries)

const globs = z.array(z.string().max(16_384)).max(100_000)
const number = z.int().min(0)

const pick = z.strictObject({
  digest: z.string(),
  selection: z.strictObject({ only: globs, except: globs }).nullable().default(null),
  parts: z
    .array(
      z.strictObject({
        base: number,
        path: z.instanceof(Uint8Array),
        hunks: z.array(number).max(100_000),
        of: number,
      }),
    )
    .max(10_000),
})

export const pickRequestOf = (entries: unknown): PickRequest => parse(pick, entries)

function parse<Schema extends z.ZodType>(schema: Schema, entries: unknown): z.infer<Schema> {
  const result = schema.safeParse(plain(fromEntries(entries as [string, unknown][])))
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new PuzzledError(
    'usage',
    `The request is not valid: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`,
  )
}

/** zod wants ordinary objects; `__proto__` as a key is refused rather than carried over. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  const copy: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw new PuzzledError('usage', 'A key of the request is not allowed')
    copy[key] = plain(item)
  }
  return copy
}
