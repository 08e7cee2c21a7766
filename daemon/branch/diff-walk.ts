import type { Change, ChangeFinding, NodeState } from '../contract/changeset.ts'
import { sameMetadata } from '../contract/changeset.ts'
import { listDirectory } from '../kernel/getdents.ts'
import { close, O, openat, S } from '../kernel/paths.ts'
import { type Stat, statAt, statFd, tryStatAt } from '../kernel/statx.ts'
import { errnoOf } from '../lib/errors.ts'
import { type Below, closeAll, DiffFiles, type Promised } from './diff-files.ts'
import { type Attributes, identityOf, kindOf, readAttributes, readBaseXattrs, stateOf } from './diff-node.ts'
import type { DiffReceiver } from './diff-sink.ts'

/** Deeper trees are refused, not walked: every level holds a descriptor per layer. */
const MAX_DEPTH = 1000

/** One directory as the agent sees it: the same directory in every layer that contributes, topmost first. */
interface Level {
  uppers: readonly number[]
  /** What the base has at this path, to compare with. */
  below: number | null
  /** Whether the base shows through; not below an opaque directory. */
  merged: boolean
  path: Buffer
  depth: number
}

/** A name in the layers of a level: which of them have it, topmost first, and as what. */
interface Entry {
  name: Buffer
  found: { layer: number; type: number }[]
}

const DIRECTORY = O.RDONLY | O.DIRECTORY
const SLASH = Buffer.from('/')

const below = (path: Buffer, name: Buffer): Buffer =>
  path.length === 0 ? name : Buffer.concat([path, SLASH, name])

/**
 * Walks the upper layers of one base, and the base only where something was deleted. Every name is opened below the
 * descriptor of its directory and never followed; the layers may be written to meanwhile.
 */
export class DiffWalk {
  readonly #base: number
  readonly #sink: DiffReceiver
  readonly #marks: string
  readonly #files: DiffFiles

  constructor(
    base: number,
    sink: DiffReceiver,
    promised: Promised = () => undefined,
    marks = 'trusted.overlay.',
  ) {
    this.#base = base
    this.#sink = sink
    this.#marks = marks
    this.#files = new DiffFiles(base, sink, marks, promised)
  }

  /**
   * Roots of the layers, topmost first, and of the base; they stay open. `forked` is what the base's root was when the
   * layers were made from it: only a difference from that is the agent's.
   */
  run(
    uppers: readonly number[],
    base: number,
    forked: Pick<NodeState, 'mode' | 'uid' | 'gid' | 'xattrs'>,
  ): void {
    const level: Level = { uppers, below: base, merged: true, path: Buffer.alloc(0), depth: 0 }
    const changed = this.#entries(level)
    const attributes = readAttributes(uppers[0] ?? -1, this.#marks)
    const fresh = stateOf(statFd(uppers[0] ?? -1), attributes.xattrs)
    const stat = statFd(base)
    const old = stateOf(stat, readBaseXattrs(base))
    const untouched = sameMetadata({ ...fresh, ...forked }, fresh)
    const now = untouched
      ? { ...fresh, mode: old.mode, uid: old.uid, gid: old.gid, xattrs: old.xattrs }
      : fresh
    this.#directory(level, now, attributes.findings, { old, stat }, changed)
  }

  /** Whether a name of this directory came, went or changed its type. */
  #entries(level: Level): boolean {
    const entries = mergeEntries(level.uppers)
    let changed = false
    for (const entry of entries.values()) {
      this.#sink.look()
      changed = this.#entry(level, entry) || changed
    }
    if (level.below === null || level.merged) return changed
    for (const { name } of listDirectory(level.below)) {
      if (entries.has(name.toString('latin1'))) continue
      changed = this.#removed(level, name) || changed
    }
    return changed
  }

  #entry(level: Level, { name, found }: Entry): boolean {
    const top = found[0]
    const dir = level.uppers[top?.layer ?? 0]
    if (top === undefined || dir === undefined) return false
    if (top.type === S.IFDIR) return this.#subdirectory(level, { name, found })
    const kind = top.type === S.IFREG ? 'file' : top.type === S.IFLNK ? 'symlink' : kindAt(dir, name)
    if (kind === undefined) return false
    if (kind === 'whiteout') return this.#removed(level, name)
    const old = lookUp(level.below, name)
    const path = below(level.path, name)
    const changed = this.#files.compare({ dir, name, path }, kind, old)
    if (old !== undefined && kindOf(old.stat) === 'dir')
      this.#removeChildren(old.dir, name, path, level.depth + 1)
    return changed
  }

  #subdirectory(level: Level, { name, found }: Entry): boolean {
    const opened = this.#openLayers(level, name, found)
    const [attributes] = opened.attributes
    if (attributes === undefined) return false
    const old = lookUp(level.below, name)
    const isDirectory = old !== undefined && kindOf(old.stat) === 'dir'
    const baseFd = isDirectory ? openat(old.dir, name, DIRECTORY) : null
    const child: Level = {
      uppers: opened.uppers,
      below: baseFd,
      merged: opened.merged,
      path: below(level.path, name),
      depth: level.depth + 1,
    }
    try {
      const fresh = stateOf(statFd(opened.uppers[0] ?? -1), attributes.xattrs)
      const deep = child.depth > MAX_DEPTH
      const findings = deep ? [...attributes.findings, TOO_DEEP] : attributes.findings
      const changed = !deep && this.#entries(child)
      const before =
        baseFd !== null && old !== undefined
          ? { old: stateOf(old.stat, readBaseXattrs(baseFd)), stat: old.stat }
          : undefined
      if (before !== undefined) this.#directory(child, fresh, findings, before, changed)
      else this.#newDirectory(child, name, fresh, findings, old)
      return before === undefined
    } finally {
      closeAll(opened.uppers)
      if (baseFd !== null) close(baseFd)
    }
  }

  /** Opens a directory in the layers from the top down to where something hides the rest. */
  #openLayers(
    level: Level,
    name: Buffer,
    found: Entry['found'],
  ): { uppers: number[]; attributes: Attributes[]; merged: boolean } {
    const uppers: number[] = []
    const attributes: Attributes[] = []
    for (const { layer, type } of found) {
      const fd = type === S.IFDIR ? openDirectoryIfThere(level.uppers[layer] ?? -1, name) : undefined
      if (fd === undefined) return { uppers, attributes, merged: false }
      uppers.push(fd)
      const marks = readAttributes(fd, this.#marks)
      attributes.push(marks)
      if (marks.opaque) return { uppers, attributes, merged: false }
    }
    return { uppers, attributes, merged: level.merged }
  }

  /** A directory on both sides. Its time alone counts only where names in it came or went. */
  #directory(
    level: Level,
    fresh: NodeState,
    findings: readonly ChangeFinding[],
    before: { old: NodeState; stat: Stat },
    namesChanged: boolean,
  ): void {
    const { old, stat } = before
    const same = sameMetadata(old, fresh) && (!namesChanged || old.mtimeNs === fresh.mtimeNs)
    if (same && findings.length === 0) return
    this.#add({ path: level.path, kind: 'metadata', old, new: fresh, identity: identityOf(stat), findings })
  }

  #newDirectory(
    level: Level,
    name: Buffer,
    fresh: NodeState,
    findings: readonly ChangeFinding[],
    old: Below | undefined,
  ): void {
    const { path } = level
    if (old === undefined) this.#add({ path, kind: 'add', old: null, new: fresh, findings })
    else
      this.#add({ path, kind: 'replace', new: fresh, ...this.#files.before({ name, path }, old, findings) })
  }

  #removed(level: Level, name: Buffer): boolean {
    const old = lookUp(level.below, name)
    if (old === undefined) return false
    this.#remove(old, name, below(level.path, name), level.depth + 1)
    return true
  }

  #remove(old: Below, name: Buffer, path: Buffer, depth: number): void {
    this.#sink.look()
    const deep = depth > MAX_DEPTH
    const before = this.#files.before({ name, path }, old, deep ? [TOO_DEEP] : [])
    this.#add({ path, kind: 'delete', new: null, ...before })
    if (!deep && kindOf(old.stat) === 'dir') this.#removeChildren(old.dir, name, path, depth)
  }

  /** Everything below a directory of the base that is gone, one by one: each must be the file that was seen. */
  #removeChildren(dir: number, name: Buffer, path: Buffer, depth: number): void {
    const fd = openat(dir, name, DIRECTORY)
    try {
      for (const entry of listDirectory(fd)) {
        const old = lookUp(fd, entry.name)
        if (old !== undefined) this.#remove(old, entry.name, below(path, entry.name), depth + 1)
      }
    } finally {
      close(fd)
    }
  }

  #add(change: Omit<Change, 'base'>): void {
    this.#sink.add({ base: this.#base, ...change })
  }
}

const TOO_DEEP: ChangeFinding = {
  rule: 'too-deep',
  message: `it is more than ${MAX_DEPTH} directories deep; what is below it was not looked at`,
}

/** What the base has under a name. A whiteout in a base is nothing: the overlay hides it too. */
function lookUp(dir: number | null, name: Buffer): Below | undefined {
  if (dir === null) return undefined
  const stat = tryStatAt(dir, name)
  return stat === undefined || kindOf(stat) === 'whiteout' ? undefined : { dir, stat }
}

function kindAt(dir: number, name: Buffer): ReturnType<typeof kindOf> | undefined {
  const stat = tryStatAt(dir, name)
  return stat === undefined ? undefined : kindOf(stat)
}

function openDirectoryIfThere(dir: number, name: Buffer): number | undefined {
  try {
    return openat(dir, name, DIRECTORY)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}

/** The names of all layers of one directory; latin1 keeps every byte apart. */
function mergeEntries(uppers: readonly number[]): Map<string, Entry> {
  const entries = new Map<string, Entry>()
  for (const [layer, fd] of uppers.entries()) {
    for (const { name, type } of listDirectory(fd)) {
      const known = type === 0 ? statAt(fd, name).mode & S.IFMT : type
      const key = name.toString('latin1')
      const entry = entries.get(key)
      if (entry === undefined) entries.set(key, { name, found: [{ layer, type: known }] })
      else entry.found.push({ layer, type: known })
    }
  }
  return entries
}
