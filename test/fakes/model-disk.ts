import { createHash } from 'node:crypto'
import type {
  Copied,
  Dir,
  Disk,
  DiskMeta,
  DiskStat,
  DiskXattr,
  FileKind,
  RenameHow,
} from '../../daemon/lib/disk.ts'
import {
  applyOp,
  cloneNode,
  cloneState,
  dump,
  type Fate,
  type ModelNode,
  type ModelOp,
  type ModelState,
} from './model-state.ts'

/** Thrown by every call from the moment at which the power is gone. */
export class PowerCut extends Error {
  override readonly name = 'PowerCut'
}

const failure = (code: string, what: string): Error => Object.assign(new Error(`${code}: ${what}`), { code })
const text = (name: Uint8Array): string => Buffer.from(name).toString('latin1')

/**
 * A disk that keeps what was synced and, of the rest, whatever a test chooses. Top-level directories are filesystems
 * of their own. Every call that changes or syncs something is one numbered step at which it can fail or lose power.
 */
export class ModelDisk implements Disk {
  /** Steps taken so far. */
  steps = 0
  /** Called before each step; throws to make it fail. */
  beforeStep: ((step: number, call: string) => void) | undefined
  #now: ModelState
  #durable: ModelState
  #pending: ModelOp[] = []
  #off = false
  #nextIno = 100
  #clock = 1_000n

  constructor(filesystems: readonly string[]) {
    this.#now = new Map()
    const root = this.#make('dir', 0)
    this.#now.set(root.ino, root)
    filesystems.forEach((name, index) => {
      const top = this.#make('dir', index + 1)
      this.#now.set(top.ino, top)
      root.entries.set(name, top.ino)
    })
    this.#durable = cloneState(this.#now)
  }

  /** The power is gone now. */
  cutPower(): never {
    this.#off = true
    throw new PowerCut('power cut')
  }

  /** Unsynced changes that the next `restart` decides about. */
  get unsynced(): number {
    return this.#pending.length
  }

  /** The machine comes back with what was synced and the chosen rest. */
  restart(fateOf: (index: number) => Fate): void {
    this.#pending.forEach((op, index) => {
      applyOp(this.#durable, op, fateOf(index))
    })
    this.#pending = []
    this.#now = cloneState(this.#durable)
    this.#off = false
  }

  /** Everything is synced, as after a clean stop. */
  settle(): void {
    this.restart(() => 'kept')
  }

  /** A copy of the disk as it would be read after a power cut in which all unsynced changes had this fate. */
  fork(): ModelDisk {
    const copy = new ModelDisk([])
    copy.#now = cloneState(this.#now)
    copy.#durable = cloneState(this.#durable)
    copy.#pending = [...this.#pending]
    copy.#nextIno = this.#nextIno
    copy.#clock = this.#clock
    copy.#off = this.#off
    return copy
  }

  show(path: string): string[] {
    return dump(this.#now, this.#walk(100, Buffer.from(path.slice(1), 'latin1')))
  }

  openRoot(path: string): Dir {
    this.#alive()
    return this.#walk(100, Buffer.from(path.slice(1), 'latin1'))
  }

  openDir(dir: Dir, path: Uint8Array): Dir {
    this.#alive()
    return this.#walk(dir, path)
  }

  close(dir: Dir): void {
    if (this.#off) return
    this.#node(dir)
  }

  mountOf(dir: Dir): number {
    return this.#node(dir).fs
  }

  projectOf(dir: Dir): number | undefined {
    this.#node(dir)
    return undefined
  }

  setProject(dir: Dir, project: number): void {
    this.#node(dir)
    throw failure('EOPNOTSUPP', `project ${project}`)
  }

  filesystemOf(dir: Dir): string | undefined {
    return `model:${this.#node(dir).fs}`
  }

  stat(dir: Dir, name: Uint8Array): DiskStat | null {
    this.#alive()
    const ino = name.length === 0 ? dir : this.#node(dir).entries.get(text(name))
    if (ino === undefined) return null
    const { kind, fs: dev, mode, uid, gid, mtimeNs, ctimeNs, data, link } = this.#node(ino)
    const size = kind === 'file' ? data.length : kind === 'symlink' ? link.length : 0
    const nlink = this.#links(ino)
    return { kind, dev, ino, mode, uid, gid, size, allocated: size, mtimeNs, ctimeNs, nlink, sealed: null }
  }

  list(dir: Dir): Buffer[] {
    this.#alive()
    return [...this.#node(dir).entries.keys()].map((name) => Buffer.from(name, 'latin1'))
  }

  readLink(dir: Dir, name: Uint8Array): Buffer {
    return this.#child(dir, name, 'symlink').link
  }

  xattrs(dir: Dir, name: Uint8Array): DiskXattr[] {
    return [...this.#child(dir, name).xattrs]
  }

  hasWriter(dir: Dir, name: Uint8Array): boolean {
    this.#child(dir, name, 'file')
    return false
  }

  digest(dir: Dir, name: Uint8Array): string {
    return createHash('sha256').update(this.readFile(dir, name)).digest('hex')
  }

  readFile(dir: Dir, name: Uint8Array): Buffer {
    this.#alive()
    return this.#child(dir, name, 'file').data
  }

  makeDir(dir: Dir, name: Uint8Array, mode: number): void {
    this.#create('mkdir', dir, name, { ...this.#make('dir', this.#node(dir).fs), mode })
  }

  makeLink(dir: Dir, name: Uint8Array, target: Uint8Array): void {
    const node = this.#make('symlink', this.#node(dir).fs)
    this.#create('symlink', dir, name, { ...node, mode: 0o777, link: Buffer.from(target) })
  }

  copyFile(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array, meta?: DiskMeta): Copied {
    const data = this.readFile(fromDir, from)
    const node = { ...this.#make('file', this.#node(dir).fs), mode: 0o600 }
    this.#create('copy', dir, name, node)
    this.#push({ kind: 'data', fs: node.fs, created: null, ino: node.ino, offset: 0, bytes: data })
    if (meta !== undefined) this.setMeta(dir, name, meta)
    return { ino: node.ino, sha256: createHash('sha256').update(data).digest('hex') }
  }

  hardLink(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array): void {
    this.#step('link')
    const ino = this.#child(fromDir, from, 'file').ino
    this.#absent(dir, name)
    this.#assign(dir, [[dir, text(name), ino]])
  }

  setMeta(dir: Dir, name: Uint8Array, meta: DiskMeta): void {
    this.#step('meta')
    const node = name.length === 0 ? this.#node(dir) : this.#child(dir, name)
    const { mode, uid, gid, mtimeNs, xattrs } = meta
    // A symlink has no mode of its own.
    const kept = node.kind === 'symlink' ? node.mode : mode
    this.#push({
      kind: 'meta',
      fs: node.fs,
      created: null,
      ino: node.ino,
      meta: { mode: kept, uid, gid, mtimeNs, xattrs },
    })
  }

  setTime(dir: Dir, name: Uint8Array, mtimeNs: bigint): void {
    this.#step('time')
    const { ino, fs } = this.#child(dir, name)
    this.#push({ kind: 'meta', fs, created: null, ino, meta: { mtimeNs } })
  }

  rename(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array, how: RenameHow): void {
    this.#step(`rename-${how}`)
    if (this.#node(fromDir).fs !== this.#node(dir).fs) throw failure('EXDEV', text(name))
    const moved = this.#child(fromDir, from).ino
    if (how === 'move') this.#absent(dir, name)
    const other = how === 'exchange' ? this.#child(dir, name).ino : null
    this.#assign(dir, [
      [fromDir, text(from), other],
      [dir, text(name), moved],
    ])
    // As on XFS: a directory that gets another parent is itself changed.
    if (fromDir !== dir) for (const ino of [moved, other]) this.#touchDir(ino)
  }

  #touchDir(ino: number | null): void {
    const node = ino === null ? undefined : this.#node(ino)
    if (node?.kind !== 'dir') return
    this.#push({ kind: 'meta', fs: node.fs, created: null, ino: node.ino, meta: { mtimeNs: this.#tick() } })
  }

  unlink(dir: Dir, name: Uint8Array): void {
    this.#step('unlink')
    if (this.#child(dir, name).kind === 'dir') throw failure('EISDIR', text(name))
    this.#assign(dir, [[dir, text(name), null]])
  }

  removeDir(dir: Dir, name: Uint8Array): void {
    this.#step('rmdir')
    if (this.#child(dir, name, 'dir').entries.size > 0) throw failure('ENOTEMPTY', text(name))
    this.#assign(dir, [[dir, text(name), null]])
  }

  writeAt(dir: Dir, name: Uint8Array, offset: number, bytes: Uint8Array): void {
    if (this.stat(dir, name) === null)
      this.#create('create', dir, name, { ...this.#make('file', this.#node(dir).fs), mode: 0o600 })
    this.#step('write')
    const { ino, fs } = this.#child(dir, name, 'file')
    this.#push({ kind: 'data', fs, created: null, ino, offset, bytes: Buffer.from(bytes) })
  }

  fsync(dir: Dir, name: Uint8Array): void {
    this.#step('fsync')
    const ino = name.length === 0 ? dir : this.#child(dir, name).ino
    // The inode itself is durable with its content, even when its name is not yet.
    const made = this.#pending.find((op) => op.created?.ino === ino)?.created
    if (made && !this.#durable.has(ino)) this.#durable.set(ino, cloneNode(made))
    const concerns = (op: ModelOp): boolean =>
      op.kind === 'entries' ? name.length === 0 && op.assign.some(([at]) => at === ino) : op.ino === ino
    this.#flush(concerns)
  }

  syncfs(dir: Dir): void {
    this.#step('syncfs')
    const { fs } = this.#node(dir)
    this.#flush((op) => op.fs === fs)
  }

  /** As late as may be: what happens beside it finds nothing durable. */
  async syncfsBeside(dir: Dir): Promise<void> {
    await null
    this.syncfs(dir)
  }

  #flush(concerns: (op: ModelOp) => boolean): void {
    const rest: ModelOp[] = []
    for (const op of this.#pending) concerns(op) ? applyOp(this.#durable, op) : rest.push(op)
    this.#pending = rest
  }

  #step(call: string): void {
    this.#alive()
    this.steps++
    this.beforeStep?.(this.steps, call)
  }

  #alive(): void {
    if (this.#off) throw new PowerCut('no power')
  }

  #push(op: ModelOp): void {
    applyOp(this.#now, op)
    const node = op.kind === 'entries' ? undefined : this.#now.get(op.ino)
    if (node !== undefined) node.ctimeNs = this.#tick()
    this.#pending.push(op)
  }

  /** Entries change, and with them the times of the directories: one change, as in a filesystem's transaction. */
  #assign(dir: Dir, assign: [number, string, number | null][], created: ModelNode | null = null): void {
    const { fs } = this.#node(dir)
    this.#push({ kind: 'entries', fs, created, assign })
    for (const at of new Set(assign.map(([where]) => where)))
      this.#push({ kind: 'meta', fs, created: null, ino: at, meta: { mtimeNs: this.#tick() } })
  }

  #create(call: string, dir: Dir, name: Uint8Array, node: ModelNode): void {
    this.#step(call)
    this.#absent(dir, name)
    this.#assign(dir, [[dir, text(name), node.ino]], cloneNode(node))
  }

  #make(kind: FileKind, fs: number): ModelNode {
    const now = this.#tick()
    const none = {
      xattrs: [],
      data: Buffer.alloc(0),
      link: Buffer.alloc(0),
      entries: new Map<string, number>(),
    }
    return {
      ino: this.#nextIno++,
      fs,
      kind,
      mode: 0o755,
      uid: 0,
      gid: 0,
      mtimeNs: now,
      ctimeNs: now,
      ...none,
    }
  }

  #tick(): bigint {
    this.#clock += 1n
    return this.#clock
  }

  #node(ino: number): ModelNode {
    const node = this.#now.get(ino)
    if (node === undefined) throw failure('EBADF', String(ino))
    return node
  }

  #child(dir: Dir, name: Uint8Array, kind?: FileKind): ModelNode {
    const ino = name.length === 0 ? dir : this.#node(dir).entries.get(text(name))
    if (ino === undefined) throw failure('ENOENT', text(name))
    const node = this.#node(ino)
    if (kind !== undefined && node.kind !== kind)
      throw failure(kind === 'dir' ? 'ENOTDIR' : 'EINVAL', text(name))
    return node
  }

  #absent(dir: Dir, name: Uint8Array): void {
    if (this.#node(dir).entries.has(text(name))) throw failure('EEXIST', text(name))
  }

  #walk(from: number, path: Uint8Array): number {
    let at = from
    for (const part of text(path).split('/')) {
      if (part === '') continue
      const node = this.#child(at, Buffer.from(part, 'latin1'))
      if (node.kind === 'symlink') throw failure('ELOOP', part)
      if (node.kind !== 'dir') throw failure('ENOTDIR', part)
      at = node.ino
    }
    return at
  }

  #links(ino: number): number {
    let count = 0
    for (const node of this.#now.values())
      for (const child of node.entries.values()) if (child === ino) count++
    return count
  }
}
