import { encodePath } from '../contract/bytes.ts'
import type { Change } from '../contract/changeset.ts'
import { type Disk, nameOf } from '../lib/disk.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import type { BaseDir, BaseDirs } from './base-dirs.ts'
import type { CommitContext, CommitJob, FindArea } from './commit-context.ts'
import type { CommitPlan } from './commit-plan.ts'
import { type Area, splitPath } from './journal/format.ts'
import { filesystemMark } from './same-filesystem.ts'

/** The private directory in the root of a mount or of a subvolume, where the store itself is elsewhere. */
export const AREA_NAME = '.puzzled'

/**
 * One private directory for each part of the disks that renames do not leave: a mount, within it a subvolume (which has a
 * device number of its own), and within that the directories of one project, which take in nothing of another.
 */
export class Areas {
  readonly list: Area[] = []
  readonly #disk: Disk
  readonly #find: FindArea
  readonly #byPart = new Map<string, number>()
  /** Asking for a project costs a system call; a directory holds many entries. */
  readonly #known = new WeakMap<BaseDir, number>()

  constructor(disk: Disk, find: FindArea) {
    this.#disk = disk
    this.#find = find
  }

  /** The one that serves a directory, by its place in the list. */
  of(at: BaseDir): number | undefined {
    const known = this.#known.get(at) ?? this.#byPart.get(keyOf(at, this.#disk.projectOf(at.dir)))
    if (known !== undefined) this.#known.set(at, known)
    return known
  }

  add(at: BaseDir, path: Buffer): void {
    if (this.of(at) !== undefined) return
    const project = this.#disk.projectOf(at.dir)
    const found = this.#find(at, path)
    this.#byPart.set(keyOf(at, project), this.list.length)
    const mark = filesystemMark(at.dev, this.#disk.filesystemOf(at.dir))
    if (project === undefined) this.list.push({ path: found, ...mark })
    else this.list.push({ path: `${found}/project-${project}`, ...mark, project })
  }
}

const keyOf = ({ mount, dev }: BaseDir, project: number | undefined): string =>
  `${mount}:${dev}:${project ?? ''}`

export function areasOf(
  { disk, findArea }: CommitContext,
  job: CommitJob,
  plan: CommitPlan,
  bases: BaseDirs,
): Areas {
  for (const change of job.changes) refuseInside(findArea, job, bases, change)
  const areas = new Areas(disk, findArea)
  for (const { kind, base, path } of plan.operations) {
    if (kind === 'adjust') continue
    const { parent } = splitPath(path)
    areas.add(bases.open(base, parent), absolute(job, base, parent))
  }
  return areas
}

function absolute(job: CommitJob, base: number, path: Uint8Array): Buffer {
  const root = Buffer.from(job.bases[base]?.path ?? '')
  return path.length === 0 ? root : Buffer.concat([root, Buffer.from('/'), path])
}

const NAME = nameOf(AREA_NAME)

/** In a base that holds the root of a mount or subvolume the area is visible: what others keep there is nobody's to change. */
function refuseInside(findArea: FindArea, job: CommitJob, bases: BaseDirs, { base, path }: Change): void {
  const bytes = Buffer.from(path.buffer, path.byteOffset, path.byteLength)
  for (let at = bytes.indexOf(NAME); at >= 0; at = bytes.indexOf(NAME, at + 1)) {
    const end = at + NAME.length
    if ((at > 0 && bytes[at - 1] !== 0x2f) || (end < bytes.length && bytes[end] !== 0x2f)) continue
    const parent = bytes.subarray(0, Math.max(0, at - 1))
    const dir = openIfThere(bases, base, parent)
    const inside = absolute(job, base, bytes.subarray(0, end)).toString()
    if (dir !== null && findArea(dir, absolute(job, base, parent)) === inside)
      throw new PuzzledError('denied', `"${inside}" belongs to puzzled; a branch cannot change it`, {
        hint: 'Nothing was changed. Commit without it: --except',
        data: { ...encodePath(path) },
      })
  }
}

function openIfThere(bases: BaseDirs, base: number, path: Buffer): BaseDir | null {
  try {
    return bases.open(base, path)
  } catch (error) {
    // What is new has nobody's area in it; what is gone was found to be a conflict.
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return null
    throw error
  }
}
