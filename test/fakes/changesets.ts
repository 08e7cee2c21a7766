import { createHash } from 'node:crypto'
import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Change, ChangeKind, Changeset, NodeState } from '../../daemon/contract/changeset.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import { NOTHING } from '../../daemon/policy/profile.ts'

/** One change in short: kind, path below the base, and what is special about it. */
export interface ShortChange {
  kind?: ChangeKind
  path: string | Uint8Array
  base?: number
  mode?: number
  oldMode?: number
  link?: string
  dir?: boolean
  uid?: number
  gid?: number
  size?: number
  xattrs?: NodeState['xattrs']
  findings?: Change['findings']
  /** New and old content, for tests that scan. */
  content?: string | Uint8Array
  old?: string | Uint8Array
}

const bytes = (content: string | Uint8Array | undefined): Buffer => Buffer.from(content ?? '')

function state(change: ShortChange, which: 'old' | 'new'): NodeState {
  const type = change.link !== undefined ? 'symlink' : change.dir === true ? 'dir' : 'file'
  const content = bytes(which === 'new' ? change.content : change.old)
  const unlike = which === 'old' && change.content === undefined && change.kind !== 'metadata' ? 'old' : ''
  return {
    type,
    mode: (which === 'old' ? change.oldMode : change.mode) ?? (type === 'dir' ? 0o755 : 0o644),
    uid: which === 'old' ? 1000 : (change.uid ?? 1000),
    gid: which === 'old' ? 1000 : (change.gid ?? 1000),
    size: change.size ?? content.byteLength,
    mtimeNs: 0n,
    ...(type === 'file' ? { sha256: createHash('sha256').update(content).update(unlike).digest('hex') } : {}),
    ...(change.link === undefined ? {} : { link: Buffer.from(change.link) }),
    xattrs: which === 'old' ? [] : (change.xattrs ?? []),
  }
}

export function makeChange(change: ShortChange): Change {
  const kind = change.kind ?? 'add'
  return {
    base: change.base ?? 0,
    path: Buffer.from(change.path),
    kind,
    old: kind === 'add' ? null : state(change, 'old'),
    new: kind === 'delete' ? null : state(change, 'new'),
    findings: change.findings ?? [],
  }
}

export function makeChangeset(
  short: readonly ShortChange[],
  options: { bases?: readonly string[]; requests?: Changeset['requests'] } = {},
): Changeset {
  const changes = short.map(makeChange)
  const number = (kind: ChangeKind): number => changes.filter((change) => change.kind === kind).length
  return {
    version: 1,
    bases: options.bases ?? ['/home/u/app'],
    changes,
    requests: options.requests ?? [],
    totals: {
      files: changes.length,
      bytes: changes.reduce((sum, change) => sum + (change.new?.size ?? 0), 0),
      additions: number('add'),
      modifications: number('modify'),
      deletions: number('delete'),
    },
    digest: createHash('sha256')
      .update(JSON.stringify(short.map(({ path, kind }) => [String(path), kind])))
      .digest('hex'),
  }
}

export function makeRecord(
  change: Partial<BranchRecord> = {},
  gate: Partial<Profile['gate']> = {},
): BranchRecord {
  return {
    version: 1,
    id: '2345678923',
    name: null,
    state: 'reviewing',
    reason: 'for a test',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    requester: { uid: 1000, gid: 1000, groups: [], name: 'u' },
    bases: [{ path: '/home/u/app', dev: 1, filesystem: 'ext4', nested: [] }],
    profile: {
      name: 'test',
      sha256: '0'.repeat(64),
      resolved: { ...NOTHING, gate: { ...NOTHING.gate, ...gate } },
    },
    command: ['true'],
    cwd: '/home/u/app',
    afterwards: 'gate',
    layers: 1,
    parent: null,
    exit: {
      code: 0,
      signal: null,
      cause: 'exited',
      startedAt: '2026-01-01T00:00:00.000Z',
      endedAt: '2026-01-01T00:00:01.000Z',
      cpuUserMs: 0,
      cpuSystemMs: 0,
      maxRssBytes: 0,
    },
    grants: [],
    digest: null,
    verdict: null,
    commit: null,
    extensions: {},
    ...change,
  }
}

/** Reads contents out of the short form, as the engine reads them from the branch. */
export function contentsOf(short: readonly ShortChange[]) {
  const byPath = new Map(short.map((change) => [Buffer.from(change.path).toString('latin1'), change]))
  return (
    _record: BranchRecord,
    change: Change,
    which: 'new' | 'old',
    limit: number,
  ): Promise<Uint8Array | null> => {
    const found = byPath.get(Buffer.from(change.path).toString('latin1'))
    const content = which === 'new' ? (found?.content ?? '') : found?.old
    return Promise.resolve(content === undefined ? null : bytes(content).subarray(0, limit))
  }
}
