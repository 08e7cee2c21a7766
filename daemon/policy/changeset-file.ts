// pure
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Change, Changeset, NodeState } from '../contract/changeset.ts'
import { readDocument } from './document.ts'
import { checkDocument } from './schema-error.ts'

const mode = z
  .union([z.int().min(0).max(0o7777), z.string().regex(/^0?[0-7]{3,4}$/, 'an octal mode such as 0755')])
  .transform((value) => (typeof value === 'number' ? value : Number.parseInt(value, 8)))
  .describe('A number, or octal digits in quotes: "0755".')

const change = z.strictObject({
  path: z
    .string()
    .min(1)
    .regex(/^[^/](?!.*(?:^|\/)\.{1,2}(?:\/|$))/, 'a path relative to the base'),
  kind: z.enum(['add', 'modify', 'delete', 'metadata', 'replace']).optional().describe('Default: add.'),
  base: z.int().min(0).optional().describe('Default: the first base.'),
  type: z.enum(['file', 'dir', 'symlink']).optional().describe('Default: file.'),
  mode: mode.optional(),
  oldMode: mode.optional(),
  uid: z.int().min(0).optional(),
  gid: z.int().min(0).optional(),
  size: z.int().min(0).optional(),
  link: z.string().optional().describe('Target of a symlink.'),
  content: z.string().optional().describe('New content: it is examined as at a real gate.'),
  old: z.string().optional().describe('Old content.'),
})

/** A changeset in short, as a person writes it to try a policy. */
export const changesetFileSchema = z.strictObject({
  bases: z
    .array(z.string().startsWith('/', 'an absolute path'))
    .min(1)
    .optional()
    .describe('Default: /home/user/project.'),
  requester: z
    .strictObject({ uid: z.int().min(0), gid: z.int().min(0) })
    .optional()
    .describe('Default: 1000.'),
  changes: z.array(change).max(200_000),
  requests: z
    .array(
      z.strictObject({
        method: z.string(),
        host: z.string(),
        path: z.string(),
        bytes: z.int().min(0).optional(),
      }),
    )
    .optional(),
})

export type ChangesetFile = z.output<typeof changesetFileSchema>
type FileChange = ChangesetFile['changes'][number]

export interface HandWritten {
  changeset: Changeset
  requester: { uid: number; gid: number }
  /** By number of the change. */
  contents: ReadonlyMap<number, { content?: string; old?: string }>
}

/** Reads YAML or JSON; every problem is reported with its line. */
export function parseChangesetFile(text: string, file: string): HandWritten {
  const document = readDocument(text, file, 'usage')
  const read = checkDocument(document, changesetFileSchema, 'usage', 'Cannot use changeset')
  const requester = read.requester ?? { uid: 1000, gid: 1000 }
  const changes = read.changes.map((each) => changeOf(each, requester))
  const number = (kind: Change['kind']): number => changes.filter((each) => each.kind === kind).length
  return {
    requester,
    contents: new Map(
      read.changes.flatMap(({ content, old }, at) =>
        content === undefined ? [] : [[at, { content, ...(old === undefined ? {} : { old }) }]],
      ),
    ),
    changeset: {
      version: 1,
      bases: read.bases ?? ['/home/user/project'],
      changes,
      requests: (read.requests ?? []).map((request, at) => ({
        id: `r${at}`,
        class: 'queue',
        sha256: '',
        ...request,
        bytes: request.bytes ?? 0,
      })),
      totals: {
        files: changes.length,
        bytes: changes.reduce((sum, each) => sum + (each.new?.size ?? 0), 0),
        additions: number('add'),
        modifications: number('modify'),
        deletions: number('delete'),
      },
      // Not the digest of a real changeset: nothing that is written by hand can be committed.
      digest: sha256(text),
    },
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

function changeOf(each: FileChange, requester: { uid: number; gid: number }): Change {
  const kind = each.kind ?? 'add'
  return {
    base: each.base ?? 0,
    path: Buffer.from(each.path),
    kind,
    old: kind === 'add' ? null : stateOf(each, 'old', requester),
    new: kind === 'delete' ? null : stateOf(each, 'new', requester),
    findings: [],
  }
}

function stateOf(each: FileChange, which: 'old' | 'new', requester: { uid: number; gid: number }): NodeState {
  const type = each.type ?? (each.link === undefined ? 'file' : 'symlink')
  const content = which === 'new' ? each.content : each.old
  const usual = type === 'dir' ? 0o755 : type === 'symlink' ? 0o777 : 0o644
  return {
    type,
    mode:
      (which === 'new' ? each.mode : (each.oldMode ?? (each.kind === 'metadata' ? undefined : each.mode))) ??
      usual,
    uid: which === 'new' ? (each.uid ?? requester.uid) : requester.uid,
    gid: which === 'new' ? (each.gid ?? requester.gid) : requester.gid,
    size: each.size ?? Buffer.byteLength(content ?? ''),
    mtimeNs: 0n,
    ...(type === 'file'
      ? { sha256: sha256(`${each.kind === 'metadata' ? '' : which}${content ?? ''}`) }
      : {}),
    ...(type === 'symlink' ? { link: Buffer.from(each.link ?? '') } : {}),
    xattrs: [],
  }
}
