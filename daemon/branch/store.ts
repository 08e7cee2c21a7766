import { join } from 'node:path'
import type { BranchRecord } from '../contract/branch.ts'
import type { BranchState } from '../contract/states.ts'
import { branchNamed, unknownBranch } from '../lib/branch-name.ts'
import type { DurableFiles } from '../lib/durable.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { isBranchId } from '../lib/ids.ts'
import { KeyLock } from '../lib/key-lock.ts'
import { decodeRecord, encodeRecord } from './branch-json.ts'
import { canMove, refusal } from './lifecycle.ts'
import { RecordMemory } from './record-memory.ts'

export interface DamagedBranch {
  id: string
  reason: string
}

/** Bounds descriptors and memory; one after the other waits for each. */
const READ_AT_ONCE = 32

/**
 * The branches of one store directory: one small record each, written before anything is said about it. Nothing else
 * changes a state, and no state changes but by the lifecycle table.
 */
export class FileBranchStore {
  readonly #root: string
  readonly #files: DurableFiles
  readonly #now: () => Date
  readonly #lock = new KeyLock<string>()
  readonly #onTrash: () => void
  readonly #memory = new RecordMemory()

  /** `onTrash` is told when there is something to remove in the background. */
  constructor(root: string, files: DurableFiles, now: () => Date, onTrash: () => void = () => undefined) {
    this.#root = root
    this.#files = files
    this.#now = now
    this.#onTrash = onTrash
  }

  directory(id: string): string {
    if (!isBranchId(id)) throw unknownBranch(id)
    return join(this.#root, 'branches', id)
  }

  async create(record: BranchRecord): Promise<void> {
    const directory = this.directory(record.id)
    await this.#lock.run(record.id, async () => {
      if (!(await this.#files.makeDirectory(directory)))
        throw new PuzzledError('internal', `Branch ${record.id} exists already`)
      await this.#write(record)
    })
    failpoint(`branch.${record.state}`)
  }

  /**
   * From now on so many records are read once. All of them for a command, and while a daemon starts: over ten thousand
   * branches, the readings of one start are most of its time. Some of them for a daemon that serves, where one command
   * asks for one branch thirty times: the memory of all would be most of a daemon's.
   */
  remember(records: number): void {
    this.#memory.limit(records)
  }

  read(id: string): Promise<BranchRecord> {
    return this.#read(id, false)
  }

  async #read(id: string, passing: boolean): Promise<BranchRecord> {
    const known = this.#memory.get(id)
    if (known !== undefined) return known
    const begun = this.#memory.begin()
    const bytes = await this.#files.read(join(this.directory(id), 'branch.json'))
    if (bytes !== null) {
      const record = decodeRecord(id, bytes)
      this.#memory.keep(id, record, { begun, passing })
      return record
    }
    throw (await this.#ids()).includes(id) ? withoutRecord(id) : unknownBranch(id)
  }

  /** Every branch that can be read; `damaged` has the others. */
  async list(): Promise<readonly BranchRecord[]> {
    return (await this.#readAll()).records
  }

  /** Branches whose record cannot be read. They are kept as they are, and shown. */
  async damaged(): Promise<readonly DamagedBranch[]> {
    return (await this.#readAll()).damaged
  }

  async resolve(text: string): Promise<string> {
    // A whole id is by far the most frequent, and must cost neither a reading of every record nor of every name.
    if (isBranchId(text) && (await this.#exists(text))) return text
    const { records, damaged } = await this.#readAll()
    return branchNamed(text, [...records, ...damaged.map(({ id }) => ({ id, name: null }))])
  }

  async move(
    id: string,
    to: BranchState,
    reason: string,
    change: Partial<BranchRecord> = {},
  ): Promise<BranchRecord> {
    const moved = await this.#change(id, (record) => {
      if (!canMove(record.state, to))
        throw new PuzzledError('wrong-state', `Cannot move branch ${id}: ${refusal(record.state, to)}`, {
          data: { branch: id, state: record.state, wanted: to },
        })
      return { ...record, ...change, state: to, reason }
    })
    failpoint(`branch.${to}`)
    return moved
  }

  update(id: string, change: Partial<BranchRecord>): Promise<BranchRecord> {
    return this.#change(id, (record) => ({ ...record, ...change, state: record.state }))
  }

  /** For recovery only: the move that the lifecycle table has for a restart, or that a journal dictates. */
  settle(
    id: string,
    to: BranchState,
    reason: string,
    change: Partial<BranchRecord> = {},
  ): Promise<BranchRecord> {
    return this.#change(id, (record) => ({ ...record, ...change, state: to, reason }))
  }

  async discard(id: string): Promise<void> {
    await this.#lock.run(id, async () => {
      const record = await this.read(id)
      if (record.state !== 'discarding' && record.state !== 'committed')
        throw new PuzzledError('wrong-state', `Branch ${id} is ${record.state}, not "discarding"`)
      await this.#changing(id, () => this.#files.move(this.directory(id), join(this.#root, 'trash', id)))
    })
    this.#onTrash()
  }

  /** A branch of which not even the first record became durable: there is nothing in it that could be lost. */
  async sweepUnborn(): Promise<readonly string[]> {
    const swept: string[] = []
    for (const id of await this.#ids()) {
      if (this.#memory.has(id)) continue
      const left = await this.#files.list(this.directory(id))
      if (left.some((name) => name !== '.branch.json.new')) continue
      await this.#files.move(this.directory(id), join(this.#root, 'trash', id))
      swept.push(id)
    }
    return swept
  }

  #change(id: string, how: (record: BranchRecord) => BranchRecord): Promise<BranchRecord> {
    return this.#lock.run(id, async () => {
      const changed: BranchRecord = {
        ...how(await this.read(id)),
        version: 1,
        id,
        updatedAt: this.#now().toISOString(),
      }
      await this.#write(changed)
      return changed
    })
  }

  /** Forgets what was read before and meanwhile, also when the work fails half-way: what is on the disk counts. */
  async #changing(id: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } finally {
      this.#memory.written(id)
    }
  }

  async #write(record: BranchRecord): Promise<void> {
    const path = join(this.directory(record.id), 'branch.json')
    try {
      await this.#changing(record.id, () => this.#files.writeRecord(path, encodeRecord(record)))
    } catch (cause) {
      const errno = errnoOf(cause)
      if (errno === undefined) throw cause
      const code = errno === 'ENOSPC' || errno === 'EDQUOT' ? 'no-space' : 'state-unreadable'
      throw new PuzzledError(code, `Cannot write the record of branch ${record.id}: ${errno}`, {
        cause,
        hint: 'The record before is still there.',
      })
    }
  }

  /** One whose record is damaged exists, too. */
  async #exists(id: string): Promise<boolean> {
    try {
      await this.read(id)
      return true
    } catch (error) {
      if (!(error instanceof PuzzledError)) throw error
      return error.code !== 'branch-unknown'
    }
  }

  async #ids(): Promise<string[]> {
    return (await this.#files.list(join(this.#root, 'branches'))).filter(isBranchId)
  }

  async #readAll(): Promise<{ records: BranchRecord[]; damaged: DamagedBranch[] }> {
    const records: BranchRecord[] = []
    const damaged: DamagedBranch[] = []
    const ids = await this.#ids()
    for (let from = 0; from < ids.length; from += READ_AT_ONCE) {
      const part = ids.slice(from, from + READ_AT_ONCE)
      for (const one of await Promise.all(part.map((id) => this.#readOrDamaged(id)))) {
        if (one?.record !== undefined) records.push(one.record)
        if (one?.damaged !== undefined) damaged.push(one.damaged)
      }
    }
    return { records, damaged }
  }

  /** Null where it was discarded between the listing and the reading. */
  async #readOrDamaged(id: string): Promise<{ record?: BranchRecord; damaged?: DamagedBranch } | null> {
    try {
      return { record: await this.#read(id, true) }
    } catch (error) {
      if (!(error instanceof PuzzledError)) throw error
      return error.code === 'branch-unknown' ? null : { damaged: { id, reason: error.message } }
    }
  }
}

const withoutRecord = (id: string): PuzzledError =>
  new PuzzledError('record-damaged', `Branch ${id} has no record`, {
    hint: 'Its directory was kept. See docs/operations.md, "A record is damaged".',
    data: { branch: id },
  })
