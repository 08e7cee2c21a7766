// pure
import { z } from 'zod'
import { FLAGS } from './change-facts.ts'

/**
 * The input document as policies see it; `policies/schema/gate-input.schema.json` is generated from this, and a test
 * checks every document of the corpus against it. A flag that is absent is false.
 */

const number = z.int().min(0)
const state = z
  .strictObject({
    type: z.enum(['file', 'dir', 'symlink']),
    mode: number.describe('Permission bits with setuid, setgid and sticky, as a decimal number.'),
    uid: number,
    gid: number,
    size: number.describe('Bytes; 0 for directories.'),
    link: z.string().optional().describe('Target of a symlink, as it is written.'),
    resolved: z.string().optional().describe('Where the link leads by its words, absolute.'),
  })
  .nullable()

const finding = z.strictObject({ rule: z.string(), message: z.string() })

const change = z.strictObject({
  path: z.string().describe('Relative to the base; bytes that are no UTF-8 are shown as \\xNN.'),
  path64: z.string().optional().describe('The exact bytes, when `path` is not.'),
  target: z.string().describe('Absolute path.'),
  name: z.string().describe('Base name, folded: lower case, NFKC, without invisible characters.'),
  extension: z.string().optional().describe('Part of `name` behind the last dot.'),
  base: number.describe('Which of `branch.base`.'),
  kind: z.enum(['add', 'modify', 'delete', 'metadata', 'replace']),
  old: state.describe('Before; null for what is added.'),
  new: state.describe('After; null for what is deleted.'),
  executable: z.literal(true).optional(),
  setuid: z.literal(true).optional().describe('Has setuid or setgid.'),
  findings: z.array(finding).optional().describe('What the diff found: devices, forged attributes, …'),
  scanned: z.literal(true).optional().describe('The whole new content was examined.'),
  unscanned: z.string().optional().describe('Why it was not, or not to its end.'),
  binary: z.literal(true).optional(),
  native: z.literal(true).optional().describe('Machine code.'),
  content: z.array(finding).optional().describe('What the content scanner found.'),
})

const changeNumbers = z.array(number)

export const gateInputSchema = z.strictObject({
  changes: z.array(change),
  settings: z.strictObject({
    allowSetuid: z.boolean(),
    maxFiles: number,
    maxBytes: number,
    maxDeletions: number,
    onAgentFailure: z.enum(['hold', 'gate']),
    paths: z
      .array(
        z.strictObject({
          action: z.enum(['deny', 'hold']),
          pattern: z.string(),
          why: z.string(),
          changes: changeNumbers,
        }),
      )
      .describe('`denyPaths` and `holdPaths` of the profile, with the changes that they match.'),
  }),
  index: z
    .strictObject({
      count: number.describe('Number of changes.'),
      names: z
        .record(z.string(), z.array(z.tuple([number, number])))
        .describe('Folded base name → [change, directory].'),
      extensions: z.record(z.string(), changeNumbers).describe('Folded extension → changes.'),
      segments: z.record(z.string(), changeNumbers).describe('Component of a directory → directories.'),
      directories: z
        .array(z.strictObject({ path: z.string(), changes: changeNumbers }))
        .describe('Folded directories.'),
      flags: z
        .partialRecord(z.enum([...FLAGS, 'manyNames']), changeNumbers)
        .describe('What is true → changes.'),
      collisions: z.array(z.tuple([number, number])).describe('Changes whose folded targets are equal.'),
    })
    .describe(
      'Where things stand, so that a rule costs what it asks for. A name through a symlink of the changeset counts.',
    ),
  version: z.literal(1),
  digest: z.string().describe('Of the changeset.'),
  branch: z.strictObject({
    id: z.string(),
    base: z.array(z.string()),
    profile: z.string(),
    enforce: z.enum(['enforce', 'shadow']),
    requester: z.strictObject({ uid: number, gid: number, name: z.string() }),
    command: z.array(z.string()),
    started: z.string(),
    ended: z.string().nullable(),
    exit: z
      .strictObject({
        code: z.int().nullable(),
        signal: z.string().nullable(),
        cause: z.string(),
        good: z.boolean().describe('Exit status 0, by itself.'),
        summary: z.string(),
      })
      .nullable(),
  }),
  totals: z.strictObject({
    files: number,
    bytes: number,
    additions: number,
    modifications: number,
    deletions: number,
  }),
  requests: z.array(
    z.strictObject({
      id: z.string(),
      method: z.string(),
      host: z.string(),
      path: z.string(),
      bytes: number,
      class: z.string(),
      sha256: z.string(),
    }),
  ),
  contents: z.strictObject({
    available: z.boolean(),
    examined: number,
    partly: number.describe('Files that were not examined, or not to their end.'),
  }),
  usage: z.record(z.string(), z.number()).describe('Use of budgets.'),
  history: z.strictObject({ tier: z.string().nullable(), recent: z.array(z.string()) }),
  now: z.iso.datetime(),
})
