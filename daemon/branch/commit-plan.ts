// pure
import { encodePath } from '../contract/bytes.ts'
import type { Change, NodeState } from '../contract/changeset.ts'
import { splitPath } from './journal/format.ts'
import { type Stripped, sgidOf, strip } from './landed-meta.ts'

/** One node of what is built in the staging directory; the first of a tree is its root. */
export interface StageNode {
  /** Below the slot; empty for the root. */
  readonly below: Buffer
  readonly change: Change
  readonly state: NodeState
}

export interface PlannedOperation {
  readonly kind: 'place' | 'swap' | 'remove' | 'adjust'
  readonly base: number
  readonly path: Buffer
  /** Null for a directory that only gets its old times back after entries in it were renamed. */
  readonly change: Change | null
  /** Name in the commit's staging directory. */
  readonly slot: string
  /** What is built there, parents first; empty for `remove` and `adjust`. */
  readonly tree: readonly StageNode[]
  /** Metadata as it lands, for `adjust`. */
  readonly state: NodeState | null
}

export interface CommitPlan {
  /** Entries in any order, then directories, deepest first: their times would be lost otherwise. */
  operations: readonly PlannedOperation[]
  warnings: readonly Stripped[]
  /** New states that land with less than the branch saw. */
  stripped: ReadonlyMap<Change, NodeState>
  /** Deleted paths that leave together with a directory above them: their identity is checked all the same. */
  folded: readonly Change[]
}

export interface PlanOptions {
  allowSetuid: boolean
  /** Whether a directory of the base that the changeset does not mention has its setgid bit. */
  inheritsGroup: (base: number, path: Uint8Array) => boolean
}

export class PlanError extends Error {
  override readonly name = 'PlanError'
  readonly change: Change

  constructor(change: Change, message: string) {
    super(message)
    this.change = change
  }
}

const keyOf = (base: number, path: Uint8Array): string => `${base}:${bytesOf(path).toString('latin1')}`

const isDirectory = (state: NodeState | null): boolean => state?.type === 'dir'

/**
 * From changes to renames. A subtree that is new is one rename, and so is one that goes. Changes come in canonical
 * order, in which a directory stands before everything below it.
 */
export function planCommit(changes: readonly Change[], options: PlanOptions): CommitPlan {
  const planner = new Planner(options)
  for (const change of changes) planner.add(change)
  return planner.finish()
}

/**
 * An entry that is renamed. There may be as many as there are changes: what follows from the change is not kept, but
 * said when it is asked for.
 */
class EntryOperation implements PlannedOperation {
  readonly kind: 'place' | 'swap' | 'remove'
  readonly change: Change
  readonly #number: number
  readonly #stripped: ReadonlyMap<Change, NodeState>
  /** Kept only where there is more than the root. */
  #tree: StagedNode[] | undefined

  constructor(
    kind: EntryOperation['kind'],
    change: Change,
    number: number,
    stripped: ReadonlyMap<Change, NodeState>,
  ) {
    this.kind = kind
    this.change = change
    this.#number = number
    this.#stripped = stripped
  }

  /** One more node of what is built, behind its parents. */
  build(change: Change): void {
    this.#tree ??= [this.#node(this.change)]
    this.#tree.push(this.#node(change))
  }

  #node(change: Change): StagedNode {
    return new StagedNode(change, this.change.path.length, this.#stripped)
  }

  get base(): number {
    return this.change.base
  }
  get path(): Buffer {
    return bytesOf(this.change.path)
  }
  get slot(): string {
    return String(this.#number)
  }
  get state(): null {
    return null
  }

  get tree(): readonly StageNode[] {
    return this.#tree ?? (this.kind === 'remove' ? [] : [this.#node(this.change)])
  }
}

class StagedNode implements StageNode {
  readonly change: Change
  readonly #root: number
  readonly #stripped: ReadonlyMap<Change, NodeState>

  /** `root` is the length of the path of the tree's root. */
  constructor(change: Change, root: number, stripped: ReadonlyMap<Change, NodeState>) {
    this.change = change
    this.#root = root
    this.#stripped = stripped
  }

  get below(): Buffer {
    return bytesOf(this.change.path).subarray(this.#root + 1)
  }
  get state(): NodeState {
    const state = this.#stripped.get(this.change) ?? this.change.new
    if (state === null) throw new RangeError('What is removed is not built')
    return state
  }
}

const bytesOf = (path: Uint8Array): Buffer => Buffer.from(path.buffer, path.byteOffset, path.byteLength)

class Planner {
  readonly #options: PlanOptions
  readonly #entries: EntryOperation[] = []
  readonly #adjusts = new Map<string, PlannedOperation>()
  readonly #touched = new Map<string, { base: number; path: Buffer }>()
  /** Directories that are built in staging, with the operation that they belong to. */
  readonly #staged = new Map<string, EntryOperation>()
  /** Directories that leave the base as a whole. */
  readonly #removed = new Set<string>()
  /** Modes as they land, for the setgid bit that new entries inherit. */
  readonly #modes = new Map<string, number>()
  readonly #warnings: Stripped[] = []
  readonly #stripped = new Map<Change, NodeState>()
  readonly #folded: Change[] = []

  constructor(options: PlanOptions) {
    this.#options = options
  }

  add(change: Change): void {
    const finding = change.findings[0]
    if (finding !== undefined) throw new PlanError(change, finding.message)
    if (change.new === null) this.#remove(change)
    else this.#bring(change, change.new)
  }

  #remove(change: Change): void {
    const { base, path } = change
    const key = keyOf(base, path)
    if (isDirectory(change.old)) this.#removed.add(key)
    if (this.#removed.has(keyOf(base, splitPath(path).parent))) {
      this.#folded.push(change)
      return
    }
    this.#entry('remove', change)
  }

  #bring(change: Change, state: NodeState): void {
    const { base, path } = change
    const key = keyOf(base, path)
    const landed = this.#landed(change, state)
    const home = path.length === 0 ? undefined : this.#staged.get(keyOf(base, splitPath(path).parent))
    if (home !== undefined) {
      home.build(change)
      if (isDirectory(landed)) this.#staged.set(key, home)
      // What is merged away below a directory that changed its type goes with the old one.
      if (change.old !== null) this.#folded.push(change)
      return
    }
    if (staysInPlace(change)) this.#adjust(change, landed)
    else {
      const operation = this.#entry(change.old === null ? 'place' : 'swap', change)
      if (isDirectory(landed)) this.#staged.set(key, operation)
      if (isDirectory(change.old)) this.#removed.add(key)
    }
  }

  #landed(change: Change, state: NodeState): NodeState {
    const parent = splitPath(change.path).parent
    const mode = this.#modes.get(keyOf(change.base, parent))
    const inherits =
      change.path.length > 0 &&
      (mode === undefined ? this.#options.inheritsGroup(change.base, parent) : sgidOf(mode))
    const landed = this.#options.allowSetuid ? { state, lost: [] } : strip(change.old, state, inherits)
    for (const message of landed.lost) this.#warnings.push({ path: encodePath(change.path).path, message })
    if (landed.lost.length > 0) this.#stripped.set(change, landed.state)
    if (isDirectory(state)) this.#modes.set(keyOf(change.base, change.path), landed.state.mode)
    return landed.state
  }

  #entry(kind: EntryOperation['kind'], change: Change): EntryOperation {
    const operation = new EntryOperation(kind, change, this.#entries.length, this.#stripped)
    this.#entries.push(operation)
    const { path } = operation
    const { parent } = splitPath(path)
    const key = keyOf(change.base, parent)
    if (!this.#touched.has(key)) this.#touched.set(key, { base: change.base, path: parent })
    const links = change.identity?.nlink ?? 1
    if (kind === 'swap' && change.old?.type === 'file' && links > 1)
      this.#warnings.push({
        path: encodePath(path).path,
        message: `${links - 1} other hard link${links === 2 ? ' keeps its' : 's keep their'} old content`,
      })
    return operation
  }

  #adjust(
    change: Change | null,
    state: NodeState | null,
    base = 0,
    path: Uint8Array = new Uint8Array(0),
  ): void {
    const at = change ?? { base, path }
    this.#adjusts.set(keyOf(at.base, at.path), {
      kind: 'adjust',
      base: at.base,
      path: Buffer.from(at.path),
      change,
      slot: '',
      tree: [],
      state,
    })
  }

  finish(): CommitPlan {
    for (const [key, { base, path }] of this.#touched)
      if (!this.#adjusts.has(key)) this.#adjust(null, null, base, path)
    const adjusts = [...this.#adjusts.values()].sort((a, b) => b.path.length - a.path.length)
    return {
      operations: [...this.#entries, ...adjusts],
      warnings: this.#warnings,
      stripped: this.#stripped,
      folded: this.#folded,
    }
  }
}

/**
 * Metadata of a directory, and of a file that has one name, is changed where it is. A file with more names is replaced:
 * the branch saw the change under this name only. A symlink is cheap to make anew.
 */
function staysInPlace(change: Change): boolean {
  if (change.old === null || change.new === null || change.old.type !== change.new.type) return false
  if (change.new.type === 'dir') return true
  return (
    change.kind === 'metadata' &&
    change.new.type === 'file' &&
    change.identity?.nlink === 1 &&
    change.hardlink === undefined
  )
}
