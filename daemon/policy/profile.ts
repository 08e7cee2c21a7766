// pure
import { z } from 'zod'
import { FEATURE_NAMES } from '../contract/features.ts'
import { type PathGrant, type Profile, SMALLEST_MEMORY } from '../contract/profile.ts'
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
    .optional()
    .describe('Globs over the decoded path. Default: any.'),
  class: z
    .enum(['live', 'read', 'queue', 'deny'])
    .describe('live: at once, also writes; read: at once, no body; queue: held until commit; deny.'),
  readBody: z
    .enum(['graphql', 'json-rpc'])
    .optional()
    .describe('Bodies of this kind are looked into: a query is a read although it is sent by POST.'),
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
  budget: z
    .strictObject({
      requests: count.optional().describe('Requests that the rule lets out.'),
      bytes: bytes.optional(),
    })
    .optional()
    .describe('Over it the agent is answered 429.'),
  headers: z
    .array(z.string().regex(/^[a-z0-9-]+$/, 'a lower-case header name'))
    .optional()
    .describe('Request headers that may leave. Default: a list of the usual ones.'),
  why,
})

const credential = z.strictObject({
  placeholder: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{8,128}$/, 'a placeholder of 8 to 128 letters, digits, "_", "." or "-"')
    .describe('What the agent holds in place of the secret. The gate replaces it in requests that leave.'),
  source: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('file').describe('file, environment, systemd or command.'), path }),
      z.strictObject({ kind: z.literal('environment'), name: variable }),
      z.strictObject({ kind: z.literal('systemd'), name: z.string().min(1, 'a credential name') }),
      z.strictObject({ kind: z.literal('command'), argv: z.array(z.string()).min(1, 'a command') }),
    ])
    .describe(
      'Where the secret is: `kind: file` and `path`, `environment` and `name`, `systemd` and `name` (a credential of the unit), or `command` and `argv`. It is read when it is needed and never written anywhere.',
    ),
  hosts: oneOrMore(host),
  header: z.string().optional().describe('The header in which the placeholder may stand.'),
  query: z.string().optional().describe('Or the parameter of the query in which it may stand.'),
  why,
})

const feature = z.enum(FEATURE_NAMES)
/** The kernel puts arguments and environment there: below this, programs die before their first instruction. */
const SMALLEST_STACK = 128 * 1024
const weight = z.int('a whole number').min(1, 'a share of at least 1').max(10_000, 'a share of at most 10000')
const rate = count.min(1, 'a number of at least 1')

/** What a profile file may say. Nothing in it is optional in the sense of "ignored": an unknown key is an error. */
export const profileSchema = z.strictObject({
  format: z.literal(PROFILE_FORMAT).describe('The first line of every profile.'),
  name: name.describe('That of the file, without .yaml.'),
  description: sentence.describe('One sentence: for whom this profile is.'),
  extends: name.optional().describe('A profile that this one narrows. Widening is an error.'),
  enforce: z
    .enum(['enforce', 'shadow'])
    .optional()
    .describe('shadow: the gate evaluates and records, and does not block.'),
  mounts: z
    .array(
      z.strictObject({
        path: oneOrMore(path),
        mode: z
          .enum(['ro', 'rw-overlay', 'hidden'])
          .describe(
            'ro: read-only; rw-overlay: writable, and what is written is part of the changeset; hidden.',
          ),
        optional: z.boolean().optional().describe('Skipped when the path does not exist.'),
        why,
      }),
    )
    .optional()
    .describe('Directories and files of the host that the agent sees, at their own paths.'),
  home: z
    .strictObject({
      mode: z
        .enum(['private', 'overlay', 'hidden'])
        .describe(
          'private: an empty one; overlay: a copy-on-write view, committed like a base; hidden: none.',
        ),
      why,
    })
    .optional()
    .describe("The requester's home directory. Default: hidden."),
  environment: z
    .strictObject({
      pass: z
        .array(z.strictObject({ names: oneOrMore(variable), why }))
        .optional()
        .describe("The requester's variables that pass: names, or prefixes that end in a star."),
      set: z
        .array(
          z.strictObject({
            name: variable,
            value: z.string().max(8192, 'a shorter value').describe('Its value.'),
            why,
          }),
        )
        .optional()
        .describe('Variables that are set.'),
    })
    .optional()
    .describe('Nothing else of the environment reaches the agent, but for what a program cannot do without.'),
  exec: z
    .strictObject({
      allow: z
        .union([grants, z.strictObject({ any: z.literal(true), why })])
        .optional()
        .describe('What the kernel starts: files, or everything below directories; or any.'),
      deny: grants.optional().describe('Masked: these can be neither executed nor read.'),
    })
    .optional()
    .describe('Executables.'),
  seccomp: z
    .strictObject({
      program: z
        .enum(['strict', 'standard', 'build'])
        .describe('Default: strict. build adds what compilers and test runners need.'),
      why,
    })
    .optional()
    .describe('The list of allowed system calls.'),
  landlock: z
    .strictObject({
      read: grants.optional().describe('Files that may be read, besides what mounts and bases say.'),
      write: grants.optional().describe('Files that may be written, besides what mounts and bases say.'),
    })
    .optional()
    .describe('Says again, in a second mechanism, what may be reached.'),
  namespaces: z
    .strictObject({
      time: z
        .boolean()
        .describe(
          'A time namespace whose clocks begin at 0, so that they do not tell how long the host is up. Needs CAP_SYS_TIME, which the unit of the daemon leaves out.',
        ),
      why,
    })
    .optional()
    .describe('Namespaces besides those that every agent has.'),
  network: z
    .strictObject({
      mode: z
        .enum(['none', 'gated', 'open-read'])
        .optional()
        .describe(
          'none: loopback only (the default); gated: what the rules allow; open-read: reads anywhere, too.',
        ),
      why: why.optional(),
      rules: z.array(rule).optional().describe('The first that matches host, port, method and path decides.'),
      expose: z
        .array(z.strictObject({ host, port, why }))
        .optional()
        .describe('Services near the host, for example a database, that are reached without being judged.'),
      ports: z
        .array(z.strictObject({ port, why }))
        .optional()
        .describe('Ports besides 80 and 443 on which the gate answers without being asked as a proxy.'),
      replay: z
        .enum(['after-files', 'before-files'])
        .optional()
        .describe('When queued requests are sent. Default: after-files.'),
      credentials: z.array(credential).optional().describe('Secrets that the agent uses and never sees.'),
    })
    .refine((network) => network.mode === undefined || network.mode === 'none' || network.why !== undefined, {
      message: 'a reason ("why") for a network that is not "none"',
      path: ['why'],
    })
    .optional()
    .describe('The network.'),
  budgets: z
    .strictObject({
      wall: seconds.optional().describe('Time since the start.'),
      cpu: seconds.optional().describe('Processor time of all processes together.'),
      memory: bytes
        .refine((size) => size >= SMALLEST_MEMORY, 'at least 16MiB, which a start needs')
        .optional()
        .describe('Memory of all processes together.'),
      pids: count.optional().describe('Processes and threads at one time.'),
      disk: bytes.optional().describe('What the layers of the branch may take.'),
      inodes: count.optional().describe('Files that the layers of the branch may have.'),
      exec: count.optional().describe('Programs that are started.'),
      egress: bytes.optional().describe('Bytes that leave over the network.'),
      requests: count.optional().describe('Requests that leave.'),
      queued: bytes.optional().describe('Requests that wait for the commit.'),
      deletions: count.optional().describe('Files of the bases that are deleted.'),
      atLimit: z
        .enum(['freeze', 'kill'])
        .optional()
        .describe(
          'What follows at 100 %: the agent stands still until somebody extends it (the default), or ends.',
        ),
    })
    .optional()
    .describe('Limits; what is not named is unlimited. At 90 % there is an event.'),
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
      ioWrite: bytes.optional().describe('Bytes per second that are written to them.'),
      ioReadOps: rate.optional().describe('Reads per second.'),
      ioWriteOps: rate.optional().describe('Writes per second.'),
    })
    .optional()
    .describe('How fast the agent may use the machine; held by cgroup v2 controllers (see "require").'),
  gate: z
    .strictObject({
      onAgentFailure: z
        .enum(['hold', 'gate'])
        .optional()
        .describe(
          'What a nonzero exit status leads to: held for a person (the default), or judged as usual.',
        ),
      allowSetuid: z
        .strictObject({ value: z.boolean().describe('true lets them land.'), why })
        .optional()
        .describe('Whether set-user-id bits and file capabilities may land. Default: they are taken off.'),
      maxFiles: count.optional().describe('More changes than this are held. Default: 10000.'),
      maxBytes: bytes.optional().describe('More new bytes than this are held. Default: 1GiB.'),
      maxDeletions: count.optional().describe('More deletions than this are held. Default: 1000.'),
      policies: z
        .array(name)
        .optional()
        .describe('Installed policies, by name, that must judge, too. One that is missing denies.'),
      holdPaths: patterns.optional().describe('Targets that always need a person.'),
      denyPaths: patterns.optional().describe('Targets that are refused.'),
    })
    .optional()
    .describe('Limits and demands of the gate, besides the policies.'),
  require: z
    .array(feature)
    .optional()
    .describe('Features, as `puzzlectl doctor` names them, without which a branch does not start.'),
  prefer: z
    .array(feature)
    .optional()
    .describe(
      'For readers: features that the profile makes use of and does without. Whatever a start asks for and does not get (Landlock, limits, quota) is recorded, named here or not.',
    ),
  rlimits: z
    .strictObject({
      nofile: count
        .min(256, 'at least 256, which a start needs')
        .optional()
        .describe('Open descriptors of a process.'),
      fsize: bytes.optional().describe('Size of a file.'),
      stack: bytes
        .refine((size) => size >= SMALLEST_STACK, 'at least 128KiB, which a program needs to begin')
        .optional()
        .describe('Stack of a process.'),
      nproc: count.optional().describe("Processes of the agent's user."),
      memlock: bytes.optional().describe('Memory that a process may lock.'),
    })
    .optional()
    .describe('Resource limits of each process, soft and hard alike.'),
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
