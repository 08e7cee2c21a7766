// pure

/** A directory that is open: a descriptor in the real adapter, a number of its own in the model. */
export type Dir = number

export type FileKind = 'file' | 'dir' | 'symlink' | 'other'

/** What `lstat` says, in full: times in nanoseconds, because identities are compared by them. */
export interface DiskStat {
  kind: FileKind
  dev: number
  ino: number
  /** Permission bits, setuid/setgid/sticky included. */
  mode: number
  uid: number
  gid: number
  size: number
  /** Bytes on the disk: holes take none. */
  allocated: number
  mtimeNs: bigint
  ctimeNs: bigint
  nlink: number
  /** An inode flag with which the kernel refuses renames, removals or metadata, to root as well. */
  sealed: 'immutable' | 'append-only' | null
}

export interface DiskXattr {
  name: string
  value: Uint8Array
}

/** Everything of a node but its content and its name. */
export interface DiskMeta {
  mode: number
  uid: number
  gid: number
  mtimeNs: bigint
  xattrs: readonly DiskXattr[]
}

/** What a copy is: its inode, and the hex SHA-256 of the bytes that were written. */
export interface Copied {
  ino: number
  sha256: string
}

/** `move`: the target must not exist. `exchange`: both must exist. `replace`: an existing target is gone. */
export type RenameHow = 'move' | 'exchange' | 'replace'

/**
 * The few system calls that a commit is made of, relative to open directories, names as bytes. A symlink is never
 * followed. Nothing is durable before `fsync` or `syncfs` returned. Failures carry the errno's name (`errnoOf`).
 * Two implementations pass one suite: the kernel, and a disk that forgets what was not synced.
 */
export interface Disk {
  /** An absolute path; every component must be a real directory. */
  openRoot(path: string): Dir
  /** Beneath `dir`; an empty path opens `dir` again. ELOOP when a component is a symlink. */
  openDir(dir: Dir, path: Uint8Array): Dir
  close(dir: Dir): void
  /** Between two directories with one number, one device and one project can be renamed. */
  mountOf(dir: Dir): number
  /** The project whose entries alone can be renamed into it, for quotas; undefined where any can. */
  projectOf(dir: Dir): number | undefined
  /** Everything that is made in this empty directory belongs to the project. */
  setProject(dir: Dir, project: number): void
  /** What its filesystem is, after a restart and under another device number as well; undefined when nobody can say. */
  filesystemOf(dir: Dir): string | undefined
  /** Null when nothing has this name. An empty name means the directory itself. */
  stat(dir: Dir, name: Uint8Array): DiskStat | null
  list(dir: Dir): Buffer[]
  readLink(dir: Dir, name: Uint8Array): Buffer
  /** ACLs included, sorted by name; without what belongs to overlay or to a security module's labels. */
  xattrs(dir: Dir, name: Uint8Array): DiskXattr[]
  /** Whether somebody can write to this file by what they have open or mapped; false where the filesystem cannot say. */
  hasWriter(dir: Dir, name: Uint8Array): boolean
  /** Hex SHA-256 of a regular file. */
  digest(dir: Dir, name: Uint8Array): string
  makeDir(dir: Dir, name: Uint8Array, mode: number): void
  makeLink(dir: Dir, name: Uint8Array, target: Uint8Array): void
  /**
   * A new regular file with the content of another; shares blocks where the filesystem can. With `meta` it is then what
   * `setMeta` makes of it, else private.
   */
  copyFile(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array, meta?: DiskMeta): Copied
  hardLink(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array): void
  /** Makes owner, mode, xattrs and mtime of a node exactly these, in an order in which no bit is lost. */
  setMeta(dir: Dir, name: Uint8Array, meta: DiskMeta): void
  /** The mtime of a node, a symlink itself; with an empty name of the directory. */
  setTime(dir: Dir, name: Uint8Array, mtimeNs: bigint): void
  rename(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array, how: RenameHow): void
  unlink(dir: Dir, name: Uint8Array): void
  removeDir(dir: Dir, name: Uint8Array): void
  /** The whole of a small file. */
  readFile(dir: Dir, name: Uint8Array): Buffer
  /** Bytes at an offset; creates the file (mode 0600). Written, not durable. */
  writeAt(dir: Dir, name: Uint8Array, offset: number, bytes: Uint8Array): void
  /** Makes a file's content, or with an empty name the entries of the directory, durable. */
  fsync(dir: Dir, name: Uint8Array): void
  /** Makes everything on the directory's filesystem durable. */
  syncfs(dir: Dir): void
  /** The same while the caller goes on: durable when the promise resolves. The directory stays open until then. */
  syncfsBeside(dir: Dir): Promise<void>
}

export const NO_NAME: Uint8Array = new Uint8Array(0)

/** A name of our own: ASCII. */
export const nameOf = (text: string): Buffer => Buffer.from(text, 'latin1')
