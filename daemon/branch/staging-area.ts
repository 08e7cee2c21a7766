import { type Dir, type Disk, NO_NAME, nameOf } from '../lib/disk.ts'
import { errnoOf } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { Area } from './journal/format.ts'
import { journalName, pendingName } from './journal/writer.ts'

/** Says where staging will be before it is: without it a crash would leave directories that nobody knows of. */
export const openingName = (commit: string): Buffer => nameOf(`${commit}.open`)
export const changesName = (commit: string): Buffer => nameOf(`${commit}.changes`)

export function writeOpening(disk: Disk, journal: Dir, commit: string, areas: readonly Area[]): void {
  disk.writeAt(journal, openingName(commit), 0, Buffer.from(`${JSON.stringify(areas)}\n`))
  disk.fsync(journal, openingName(commit))
  disk.fsync(journal, NO_NAME)
  failpoint('commit.opened')
}

/** Null when the file is torn: then nothing was staged yet. */
export function readOpening(disk: Disk, journal: Dir, commit: string): readonly Area[] | null {
  try {
    return JSON.parse(disk.readFile(journal, openingName(commit)).toString('utf8')) as Area[]
  } catch (error) {
    if (error instanceof SyntaxError || errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** The commit's own directory in each area: created before staging, or opened again by recovery. */
export function openAreas(
  disk: Disk,
  journal: Dir,
  areas: readonly Area[],
  commit: string,
  how: 'create' | 'open',
): Dir[] {
  const open: Dir[] = []
  const owner = disk.stat(journal, NO_NAME)?.uid ?? 0
  try {
    for (const area of areas) {
      const parent = how === 'create' ? makeArea(disk, area, owner) : disk.openRoot(area.path)
      try {
        if (how === 'create') disk.makeDir(parent, nameOf(commit), 0o700)
        const dir = disk.openDir(parent, nameOf(commit))
        open.push(dir)
        if (how === 'create' && area.project !== undefined) disk.setProject(dir, area.project)
      } finally {
        disk.close(parent)
      }
    }
    return open
  } catch (error) {
    for (const dir of open) disk.close(dir)
    throw error
  }
}

function makeArea(disk: Disk, { path, project }: Area, owner: number): Dir {
  // That of a project is in the one of its filesystem.
  if (project !== undefined) disk.close(makePrivate(disk, path.slice(0, path.lastIndexOf('/')), owner))
  return makePrivate(disk, path, owner)
}

/** The area itself, mode 0700. A thing of that name that is not ours and private is refused. */
function makePrivate(disk: Disk, path: string, owner: number): Dir {
  const at = path.lastIndexOf('/')
  const parent = disk.openRoot(path.slice(0, at) || '/')
  try {
    const name = nameOf(path.slice(at + 1))
    if (disk.stat(parent, name) === null) disk.makeDir(parent, name, 0o700)
    const dir = disk.openDir(parent, name)
    const stat = disk.stat(dir, NO_NAME)
    if (stat?.uid === owner && (stat.mode & 0o077) === 0) return dir
    disk.close(dir)
    throw Object.assign(new Error(`"${path}" is not a private directory of the daemon`), { code: 'EPERM' })
  } finally {
    disk.close(parent)
  }
}

/** Takes an INTENT back that was named but is not known to be durable. Nothing was applied yet. */
export function withdraw(disk: Disk, journal: Dir, commit: string): void {
  if (disk.stat(journal, nameOf(journalName(commit))) === null) return
  disk.unlink(journal, nameOf(journalName(commit)))
  disk.fsync(journal, NO_NAME)
}

/** Without INTENT nothing refers to what was staged. */
export function removeLeftovers(disk: Disk, journal: Dir, commit: string): void {
  const areas = readOpening(disk, journal, commit) ?? []
  for (const area of areas) removeFrom(disk, area, commit)
  for (const name of [nameOf(pendingName(commit)), changesName(commit), openingName(commit)])
    if (disk.stat(journal, name) !== null) disk.unlink(journal, name)
  failpoint('commit.leftovers-removed')
}

function removeFrom(disk: Disk, area: Area, commit: string): void {
  if (isAway(disk, area))
    throw Object.assign(new Error(`the filesystem of "${area.path}" is not mounted`), { code: 'ENODEV' })
  const parent = openIfThere(disk, area.path)
  if (parent === null) return
  try {
    if (disk.stat(parent, nameOf(commit)) === null) return
    removeTree(disk, parent, nameOf(commit))
    // Before the records that say where it was can go.
    disk.fsync(parent, NO_NAME)
  } finally {
    disk.close(parent)
  }
}

/**
 * A filesystem that is not mounted now can come back, with what was staged on it: who forgets where that is leaves it there for
 * ever. What is in memory does not come back.
 */
export function isAway(disk: Disk, { path, filesystemId }: Area): boolean {
  if (filesystemId === undefined || filesystemId.startsWith('tmpfs:')) return false
  for (let end = path.length; end >= 0; end = path.lastIndexOf('/', end - 1)) {
    const dir = openIfThere(disk, path.slice(0, end) || '/')
    if (dir === null) continue
    const now = disk.filesystemOf(dir)
    disk.close(dir)
    return now !== undefined && now !== filesystemId
  }
  return false
}

function openIfThere(disk: Disk, path: string): Dir | null {
  try {
    return disk.openRoot(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** After UNDONE or retention: first what was staged or replaced, then the records that say where it is. */
export function removeStaging(disk: Disk, journal: Dir, commit: string, areas: readonly Area[]): void {
  for (const area of areas) removeFrom(disk, area, commit)
  failpoint('undo.staging-removed')
  removeRecords(disk, journal, commit)
  failpoint('undo.removed')
}

/** The journal goes last: what it says is known of the others. */
export function removeRecords(disk: Disk, journal: Dir, commit: string): void {
  for (const name of [changesName(commit), openingName(commit), nameOf(journalName(commit))])
    if (disk.stat(journal, name) !== null) disk.unlink(journal, name)
}

/** Removes a tree of any depth with two open directories: subdirectories are first renamed up to the top. */
export function removeTree(disk: Disk, parent: Dir, name: Buffer): void {
  const stat = disk.stat(parent, name)
  if (stat === null) return
  if (stat.kind !== 'dir') {
    disk.unlink(parent, name)
    return
  }
  const top = disk.openDir(parent, name)
  try {
    refuseMount(disk, parent, top, name)
    emptyDir(disk, top)
  } finally {
    disk.close(top)
  }
  disk.removeDir(parent, name)
}

/** What somebody mounted there is never removed with it, whatever brought it below our directories. */
function refuseMount(disk: Disk, from: Dir, dir: Dir, name: Buffer): void {
  if (disk.mountOf(dir) !== disk.mountOf(from))
    throw Object.assign(new Error(`Something is mounted on "${name.toString()}", which is to be removed`), {
      code: 'EXDEV',
    })
}

function emptyDir(disk: Disk, top: Dir): void {
  for (let names = disk.list(top); names.length > 0; names = disk.list(top))
    for (const name of names) {
      if (disk.stat(top, name)?.kind !== 'dir') {
        disk.unlink(top, name)
        continue
      }
      const dir = disk.openDir(top, name)
      try {
        refuseMount(disk, top, dir, name)
        for (const below of disk.list(dir)) {
          const stat = disk.stat(dir, below)
          // Named by inode: unique, also among those that an interrupted removal left.
          if (stat?.kind === 'dir') disk.rename(dir, below, top, nameOf(`.raised-${stat.ino}`), 'move')
          else disk.unlink(dir, below)
        }
      } finally {
        disk.close(dir)
      }
      disk.removeDir(top, name)
    }
}
