import type { Change, ChangeFinding, NodeState } from '../contract/changeset.ts'
import { sameMetadata } from '../contract/changeset.ts'
import { listDirectory } from '../kernel/getdents.ts'
import { close, O, openat, S } from '../kernel/paths.ts'
import { type Stat, statAt, statFd, tryStatAt } from '../kernel/statx.ts'
import { errnoOf } from '../lib/errors.ts'
import { type Below, closeAll, DiffFiles, type Promised } from './diff-files.ts'
import { type Attributes, identityOf, kindOf, readAttributes, readBaseXattrs, stateOf } from './diff-node.ts'
import type { DiffReceiver } from './diff-sink.ts'
import { ALONE, type Company, type Entry, type Level, type Round, type Turn } from './walk-round.ts'

/** Deeper trees are refused, not walked: every level holds a descriptor per layer. */
const MAX_DEPTH = 1000

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
  readonly #company: Company

  constructor(
    base: number,
    sink: DiffReceiver,
    promised: Promised = () => undefined,
    company: Company = ALONE,
    marks = 'trusted.overlay.',
  ) {
    this.#base = base
    this.#sink = sink
    this.#marks = marks
    this.#company = company
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
    const changed = this.#all({ base: this.#base, level, entries: [...entries.values()], gone: false })
    if (level.below === null || level.merged) return changed
    const gone = listBase(level.below).filter(({ name }) => !entries.has(name.toString('latin1')))
    return this.#all({ base: this.#base, level, entries: gone, gone: true }) || changed
  }

  #all(round: Round): boolean {
    const turn = this.#company.begin(round)
    try {
      const changed = this.each(round, turn)
      return turn.end() || changed
    } finally {
      turn.leave()
    }
  }

  /** Looks at what a turn gives of a round. Whether one of the names came, went or changed its type. */
  each({ level, gone }: Omit<Round, 'entries'>, turn: Pick<Turn, 'next'>): boolean {
    let changed = false
    for (let entry = turn.next(); entry !== undefined; entry = turn.next())
      changed = (gone ? this.#removed(level, entry.name) : this.#present(level, entry)) || changed
    return changed
  }

  #present(level: Level, entry: Entry): boolean {
    this.#sink.look()
    return this.#entry(level, entry)
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
    // Whatever fails, and wherever: with a hostile base many of these calls can.
    const opened: number[] = []
    try {
      const layers = this.#openLayers(level, name, found, opened)
      const uppers = [...opened]
      const [attributes] = layers.attributes
      if (attributes === undefined) return false
      const old = lookUp(level.below, name)
      const before =
        old === undefined || kindOf(old.stat) !== 'dir' ? undefined : openBelow(old, name, opened)
      const child: Level = {
        uppers,
        below: before?.fd ?? null,
        merged: layers.merged,
        path: below(level.path, name),
        depth: level.depth + 1,
      }
      const fresh = stateOf(statFd(uppers[0] ?? -1), attributes.xattrs)
      const deep = child.depth > MAX_DEPTH
      const findings = deep ? [...attributes.findings, TOO_DEEP] : attributes.findings
      const changed = !deep && this.#entries(child)
      if (before === undefined) this.#newDirectory(child, name, fresh, findings, old)
      else this.#directory(child, fresh, findings, stateBefore(before), changed)
      return before === undefined
    } finally {
      closeAll(opened)
    }
  }

  /** Opens a directory in the layers from the top down to where something hides the rest. */
  #openLayers(
    level: Level,
    name: Buffer,
    found: Entry['found'],
    opened: number[],
  ): { attributes: Attributes[]; merged: boolean } {
    const attributes: Attributes[] = []
    for (const { layer, type } of found) {
      const fd = type === S.IFDIR ? openDirectoryIfThere(level.uppers[layer] ?? -1, name) : undefined
      if (fd === undefined) return { attributes, merged: false }
      opened.push(fd)
      const marks = readAttributes(fd, this.#marks)
      attributes.push(marks)
      if (marks.opaque) return { attributes, merged: false }
    }
    return { attributes, merged: level.merged }
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
      const level: Level = { uppers: [], below: fd, merged: false, path, depth }
      this.#all({ base: this.#base, level, entries: listBase(fd), gone: true })
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

/** A directory of the base, which is closed with what else was opened. */
function openBelow(old: Below, name: Buffer, opened: number[]): { fd: number; stat: Stat } {
  const fd = openat(old.dir, name, DIRECTORY)
  opened.push(fd)
  return { fd, stat: old.stat }
}

const stateBefore = ({ fd, stat }: { fd: number; stat: Stat }): { old: NodeState; stat: Stat } => ({
  old: stateOf(stat, readBaseXattrs(fd)),
  stat,
})

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

const listBase = (fd: number): Entry[] =>
  listDirectory(fd).map(({ name, type }) => ({ name, found: [{ layer: 0, type }] }))
