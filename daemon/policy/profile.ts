// pure
import { z } from 'zod'
import { FEATURE_NAMES } from '../contract/features.ts'
import type { PathGrant, Profile } from '../contract/profile.ts'
import { type Place, readDocument, type SourceDocument } from './document.ts'
import { bytes, count, host, oneOrMore, path, pathPattern, port, seconds, variable, why } from './fields.ts'
import { checkDocument } from './schema-error.ts'

export const PROFILE_FORMAT = 'puzzled/profile/v1'

const grants = z.array(z.strictObject({ path: oneOrMore(path), why }))
const patterns = z.array(z.strictObject({ path: oneOrMore(pathPattern), why }))
const name = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'a lower-case name of letters, digits and "-"')
const sentence = z.string().trim().min(8, 'a sentence').max(600, 'at most 600 characters')

const rule = z.strictObject({
  id: name.describe('Names the rule in denials and in the audit log.'),
  hosts: oneOrMore(host),
  ports: oneOrMore(port).optional().describe('Default: 443 and 80.'),
  methods: z
    .union([z.literal('any'), oneOrMore(z.string().regex(/^[A-Z]{3,16}$/, 'an HTTP method in capitals'))])
    .optional()
    .describe('Default: GET and HEAD.'),
  paths: z
    .union([z.literal('any'), oneOrMore(z.string().startsWith('/', 'a glob that begins with "/"').max(2048))])
    .optional(),
  class: z
    .enum(['live', 'read', 'queue', 'deny'])
    .describe('live: at once, also writes; read: at once, no body; queue: held until commit; deny.'),
  readBody: z.enum(['graphql', 'json-rpc']).optional(),
  readMethods: z
    .array(z.string().min(1).max(256))
    .optional()
    .describe('Globs of JSON-RPC methods that are reads; without it no call is one.'),
  addresses: z
    .array(z.string().regex(/^[0-9a-f.:]+(\/\d{1,3})?$/i, 'an address or CIDR'))
    .optional()
    .describe('Private addresses that the hosts may resolve to. Metadata services are never reached.'),
  tls: z
    .enum(['intercept', 'tunnel'])
    .optional()
    .describe('Default: intercept. A tunnel cannot be judged by method.'),
  budget: z.strictObject({ requests: count.optional(), bytes: bytes.optional() }).optional(),
  headers: z.array(z.string().regex(/^[a-z0-9-]+$/, 'a lower-case header name')).optional(),
  why,
})

const credential = z.strictObject({
  placeholder: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{8,128}$/, 'a placeholder of 8 to 128 letters, digits, "_", "." or "-"'),
  source: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('file'), path }),
    z.strictObject({ kind: z.literal('environment'), name: variable }),
    z.strictObject({ kind: z.literal('systemd'), name: z.string().min(1, 'a credential name') }),
    z.strictObject({ kind: z.literal('command'), argv: z.array(z.string()).min(1, 'a command') }),
  ]),
  hosts: oneOrMore(host),
  header: z.string().optional(),
  query: z.string().optional(),
  why,
})

const feature = z.enum(FEATURE_NAMES)
const weight = z.int('a whole number').min(1, 'a share of at least 1').max(10_000, 'a share of at most 10000')
const rate = count.min(1, 'a number of at least 1')

/** What a profile file may say. Nothing in it is optional in the sense of "ignored": an unknown key is an error. */
export const profileSchema = z.strictObject({
  format: z.literal(PROFILE_FORMAT),
  name,
  description: sentence,
  extends: name.optional().describe('A profile that this one narrows. Widening is an error.'),
  enforce: z
    .enum(['enforce', 'shadow'])
    .optional()
    .describe('shadow: the gate evaluates and records, and does not block.'),
  mounts: z
    .array(
      z.strictObject({
        path: oneOrMore(path),
        mode: z.enum(['ro', 'rw-overlay', 'hidden']),
        optional: z.boolean().optional().describe('Skipped when the path does not exist.'),
        why,
      }),
    )
    .optional(),
  home: z.strictObject({ mode: z.enum(['private', 'overlay', 'hidden']), why }).optional(),
  environment: z
    .strictObject({
      pass: z.array(z.strictObject({ names: oneOrMore(variable), why })).optional(),
      set: z
        .array(z.strictObject({ name: variable, value: z.string().max(8192, 'a shorter value'), why }))
        .optional(),
    })
    .optional(),
  exec: z
    .strictObject({
      allow: z.union([grants, z.strictObject({ any: z.literal(true), why })]).optional(),
      deny: grants.optional(),
    })
    .optional(),
  seccomp: z.strictObject({ program: z.enum(['strict', 'standard', 'build']), why }).optional(),
  landlock: z.strictObject({ read: grants.optional(), write: grants.optional() }).optional(),
  namespaces: z.strictObject({ time: z.boolean(), why }).optional(),
  network: z
    .strictObject({
      mode: z.enum(['none', 'gated', 'open-read']).optional(),
      why: why.optional(),
      rules: z.array(rule).optional(),
      expose: z.array(z.strictObject({ host, port, why })).optional(),
      ports: z.array(z.strictObject({ port, why })).optional(),
      replay: z.enum(['after-files', 'before-files']).optional(),
      credentials: z.array(credential).optional(),
    })
    .refine((network) => network.mode === undefined || network.mode === 'none' || network.why !== undefined, {
      message: 'a reason ("why") for a network that is not "none"',
      path: ['why'],
    })
    .optional(),
  budgets: z
    .strictObject({
      wall: seconds.optional(),
      cpu: seconds.optional(),
      memory: bytes.optional(),
      pids: count.optional(),
      disk: bytes.optional(),
      inodes: count.optional(),
      exec: count.optional(),
      egress: bytes.optional(),
      requests: count.optional(),
      queued: bytes.optional(),
      deletions: count.optional(),
      atLimit: z.enum(['freeze', 'kill']).optional(),
    })
    .optional(),
  resources: z
    .strictObject({
      cpus: z
        .number()
        .min(0.01, 'at least 0.01 processors')
        .max(4096, 'at most 4096 processors')
        .optional()
        .describe('Processors at a time, may be a fraction.'),
      cpuWeight: weight.optional().describe('Share of the processors when they are busy; others have 100.'),
      memoryHigh: bytes
        .optional()
        .describe('Above this the agent is slowed down; budgets.memory is the end.'),
      ioWeight: weight.optional().describe('Share of the disks when they are busy; others have 100.'),
      ioRead: bytes.optional().describe('Bytes per second that are read from the disks of bases and store.'),
      ioWrite: bytes.optional(),
      ioReadOps: rate.optional(),
      ioWriteOps: rate.optional(),
    })
    .optional()
    .describe('How fast the agent may use the machine; held by cgroup v2 controllers (see "require").'),
  gate: z
    .strictObject({
      onAgentFailure: z.enum(['hold', 'gate']).optional(),
      allowSetuid: z.strictObject({ value: z.boolean(), why }).optional(),
      maxFiles: count.optional(),
      maxBytes: bytes.optional(),
      maxDeletions: count.optional(),
      policies: z.array(name).optional(),
      holdPaths: patterns.optional(),
      denyPaths: patterns.optional(),
    })
    .optional(),
  require: z.array(feature).optional(),
  prefer: z.array(feature).optional(),
  rlimits: z
    .strictObject({
      nofile: count.optional(),
      fsize: bytes.optional(),
      stack: bytes.optional(),
      nproc: count.optional(),
      memlock: bytes.optional(),
    })
    .optional(),
})

export type ProfileSource = z.output<typeof profileSchema>

/** One profile file, checked, that still knows where each of its lines stands. */
export interface ParsedProfile {
  source: ProfileSource
  document: SourceDocument
}

export function parseProfile(text: string, file: string): ParsedProfile {
  const document = readDocument(text, file, 'profile-invalid')
  const source = checkDocument(document, profileSchema, 'profile-invalid', 'Cannot use profile')
  return { source, document }
}

/** Where each grant and limit of a resolved profile comes from: `budgets.memory` → standard.yaml:31. */
export type Origins = ReadonlyMap<string, Place>

export interface ResolvedProfile {
  profile: Profile
  origins: Origins
}

/** What is not written is not granted. */
export const NOTHING: Profile = {
  name: 'nothing',
  description: 'Grants nothing: where every profile starts from.',
  enforce: 'enforce',
  mounts: [],
  home: 'hidden',
  environment: { pass: [], set: {} },
  exec: { allow: [], deny: [] },
  seccomp: 'strict',
  landlock: { read: [], write: [] },
  namespaces: { time: false },
  network: { mode: 'none', rules: [], expose: [], ports: [], replay: 'after-files', credentials: [] },
  budgets: { limits: {}, atLimit: 'freeze' },
  resources: {},
  gate: {
    onAgentFailure: 'hold',
    allowSetuid: false,
    maxFiles: 10_000,
    maxBytes: 1024 ** 3,
    maxDeletions: 1_000,
    policies: [],
    holdPaths: [],
    denyPaths: [],
  },
  require: [],
  prefer: [],
  rlimits: {},
}

export const flattenGrants = (
  list: readonly { path: readonly string[]; why: string }[] | undefined,
): PathGrant[] => (list ?? []).flatMap((grant) => grant.path.map((each) => ({ path: each, why: grant.why })))
