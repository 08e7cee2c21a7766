import { createHash } from 'node:crypto'
import type { CommitContext, CommitJob, JobHooks } from '../../daemon/branch/commit-context.ts'
import type { Change, ChangeKind, NodeState } from '../../daemon/contract/changeset.ts'
import { type DiskStat, NO_NAME, nameOf } from '../../daemon/lib/disk.ts'
import { ModelDisk } from './model-disk.ts'

export const COMMIT = 'c23456789bcd'
export const NO_HOOKS: JobHooks = { beforeIntent: async () => undefined, afterIntent: async () => undefined }
const USER = { uid: 1000, gid: 1000 }

/** Two bases on two filesystems, a store on a third, and a branch whose layers hold what the changes bring. */
export function makeWorld(): { disk: ModelDisk; job: CommitJob; context: CommitContext } {
  const disk = new ModelDisk(['store', 'one', 'two'])
  const store = disk.openRoot('/store')
  for (const name of ['journal', 'layers']) disk.makeDir(store, nameOf(name), 0o700)
  for (const base of ['/one', '/two']) {
    const top = disk.openRoot(base)
    disk.makeDir(top, nameOf('base'), 0o755)
    const dir = disk.openDir(top, nameOf('base'))
    for (const [name, content] of Object.entries({
      keep: 'kept',
      edit: 'old text',
      gone: 'bye',
      meta: 'm',
      link: 'l',
    }))
      write(disk, dir, name, content)
    disk.makeDir(dir, nameOf('tree'), 0o755)
    const tree = disk.openDir(dir, nameOf('tree'))
    write(disk, tree, 'a', 'a in tree')
    write(disk, tree, 'b', 'b in tree')
    disk.makeDir(dir, nameOf('becomes'), 0o755)
    write(disk, disk.openDir(dir, nameOf('becomes')), 'inside', 'x')
    disk.makeLink(dir, nameOf('symlink'), nameOf('keep'))
  }
  disk.settle()
  const changes = [0, 1].flatMap((base) => changesOf(disk, base, base === 0 ? '/one/base' : '/two/base'))
  disk.settle()
  disk.steps = 0
  return { disk, job: jobOf(disk, changes), context: contextOf(disk) }
}

function write(disk: ModelDisk, dir: number, name: string, content: string): void {
  disk.writeAt(dir, nameOf(name), 0, Buffer.from(content))
  disk.setMeta(dir, nameOf(name), { mode: 0o644, ...USER, mtimeNs: 77n, xattrs: [] })
}

function jobOf(disk: ModelDisk, changes: readonly Change[]): CommitJob {
  return {
    commit: COMMIT,
    branch: '23456789bc',
    digest: 'd'.repeat(64),
    part: false,
    reverts: null,
    requester: { ...USER, groups: [], name: 'user' },
    at: '2026-01-01T00:00:00.000Z',
    forkedAtNs: null,
    allowSetuid: false,
    bases: ['/one/base', '/two/base'].map((path) => ({
      path,
      dev: disk.stat(disk.openRoot(path), NO_NAME)?.dev ?? 0,
    })),
    changes,
  }
}

/** Content is looked up in the store by its digest: where it comes from is not what these tests are about. */
export function contextOf(disk: ModelDisk): CommitContext {
  return {
    disk,
    journal: '/store/journal',
    findArea: (_, path) => `/${path.toString().split('/')[1]}/.puzzled`,
    lockBase: () => () => undefined,
    access: { reach: () => null, changeEntries: () => null, write: () => null },
    sources: {
      find: (_, state) => ({
        dir: disk.openRoot('/store/layers'),
        name: nameOf(state.sha256 ?? ''),
        release: () => undefined,
      }),
      close: () => undefined,
    },
  }
}

function changesOf(disk: ModelDisk, base: number, path: string): Change[] {
  const root = disk.openRoot(path)
  const at = (name: string): NodeState => stateAt(disk, root, name)
  const file = (content: string, extra: Partial<NodeState> = {}): NodeState => fileState(disk, content, extra)
  const dir = { type: 'dir', mode: 0o755, ...USER, size: 0, mtimeNs: 500n, xattrs: [] } as const
  const one = (name: string, kind: ChangeKind, state: NodeState | null): Change => {
    const stat = statOf(disk, root, name)
    return {
      base,
      path: Buffer.from(name),
      kind,
      old: stat === null ? null : at(name),
      new: state,
      findings: [],
      ...(stat === null ? {} : { identity: { ...stat } }),
    }
  }
  return [
    one('', 'metadata', { ...at(''), mtimeNs: 900n }),
    one('becomes', 'replace', file('a file now')),
    one('becomes/inside', 'delete', null),
    one('edit', 'modify', file('new text', { xattrs: [{ name: 'user.a', value: Buffer.from('1') }] })),
    one('gone', 'delete', null),
    one('link', 'replace', { ...dir, mtimeNs: 501n }),
    one('link/below', 'add', file('below')),
    one('meta', 'metadata', { ...at('meta'), mode: 0o600, mtimeNs: 502n }),
    one('new', 'add', dir),
    one('new/deep', 'add', { ...dir, mtimeNs: 503n }),
    one('new/deep/file', 'add', file('deep')),
    one('new/s', 'add', {
      type: 'symlink',
      mode: 0o777,
      ...USER,
      size: 4,
      mtimeNs: 504n,
      link: Buffer.from('deep'),
      xattrs: [],
    }),
    one('symlink', 'modify', {
      type: 'symlink',
      mode: 0o777,
      ...USER,
      size: 4,
      mtimeNs: 505n,
      link: Buffer.from('edit'),
      xattrs: [],
    }),
    one('tree', 'delete', null),
    one('tree/a', 'delete', null),
    one('tree/b', 'delete', null),
  ]
}

function fileState(disk: ModelDisk, content: string, extra: Partial<NodeState>): NodeState {
  const sha256 = createHash('sha256').update(content).digest('hex')
  const layers = disk.openRoot('/store/layers')
  if (disk.stat(layers, nameOf(sha256)) === null)
    disk.writeAt(layers, nameOf(sha256), 0, Buffer.from(content))
  return {
    type: 'file',
    mode: 0o644,
    ...USER,
    size: content.length,
    mtimeNs: 600n,
    sha256,
    xattrs: [],
    ...extra,
  }
}

function statOf(disk: ModelDisk, root: number, path: string): DiskStat | null {
  const at = path.lastIndexOf('/')
  try {
    return disk.stat(disk.openDir(root, nameOf(at < 0 ? '' : path.slice(0, at))), nameOf(path.slice(at + 1)))
  } catch {
    // A parent that does not exist: the path is new.
    return null
  }
}

/** What the model holds at a path, as a changeset says it. */
export function stateAt(disk: ModelDisk, root: number, path: string): NodeState {
  const stat = statOf(disk, root, path)
  if (stat === null || stat.kind === 'other') throw new Error(`nothing at ${path}`)
  const at = path.lastIndexOf('/')
  const dir = disk.openDir(root, nameOf(at < 0 ? '' : path.slice(0, at)))
  const name = nameOf(path.slice(at + 1))
  const { mode, uid, gid, size, mtimeNs } = stat
  return {
    type: stat.kind,
    ...{ mode, uid, gid, size, mtimeNs },
    xattrs: disk.xattrs(dir, name),
    ...(stat.kind === 'file' ? { sha256: disk.digest(dir, name) } : {}),
    ...(stat.kind === 'symlink' ? { link: disk.readLink(dir, name) } : {}),
  }
}

export interface Trees {
  one: string
  two: string
}

export const treesOf = (disk: ModelDisk): Trees => ({
  one: disk.show('/one/base').join('\n'),
  two: disk.show('/two/base').join('\n'),
})

/** Staged files and records that are left over; the retained old versions of a finished commit are not. */
export function leftovers(disk: ModelDisk, committed: boolean): string[] {
  const left: string[] = []
  for (const fs of ['/one', '/two']) {
    const top = disk.openRoot(fs)
    if (disk.stat(top, nameOf('.puzzled')) === null) continue
    for (const name of disk.list(disk.openDir(top, nameOf('.puzzled'))))
      if (!committed || name.toString() !== COMMIT) left.push(`${fs}/.puzzled/${name}`)
  }
  const expected = committed ? [`${COMMIT}.log`, `${COMMIT}.changes`] : []
  for (const name of disk.list(disk.openRoot('/store/journal')))
    if (!expected.includes(name.toString())) left.push(`journal/${name}`)
  return left
}
