import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fstatfs } from '../kernel/file-data.ts'
import { tryLock } from '../kernel/file-lock.ts'
import { fchmod, openRoot, withFd } from '../kernel/paths.ts'
import { statFd } from '../kernel/statx.ts'
import type { DurableFiles } from '../lib/durable.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { refusalOf, unsuitableState, unusablePart } from '../lib/state-place.ts'

export const STORE_VERSION = 1
export const STORE_FOLDERS = ['branches', 'journal', 'staging', 'audit', 'policy', 'trash'] as const
const STORE_FILES = ['version', 'lock'] as const

export interface StoreDirectory {
  /** Canonical. */
  path: string
  /** Tells those who wait for the lock whether it is held for as long as an agent or a daemon runs, or soon free. */
  keeps(long: boolean): void
  /** Gives the lock back. The kernel does it too when the process ends in whatever way. */
  close(): void
}

/** Makes or checks the store's directory and takes its lock: one process per store. */
export async function openStoreDirectory(
  path: string,
  files: DurableFiles,
  long = false,
): Promise<StoreDirectory> {
  const real = makeRoot(path)
  withFd(openDirectory(real), (fd) => checkRoot(fd, real))
  checkParts(real)
  const lock = takeLock(real, long)
  try {
    await checkVersion(real, files)
    for (const folder of STORE_FOLDERS) await files.makeDirectory(join(real, folder))
    return storeDirectory(real, lock, long)
  } catch (error) {
    closeSync(lock)
    throw error
  }
}

/** One that is held for long in any case stays so, whatever runs. After `close` the descriptor may be another's. */
function storeDirectory(path: string, lock: number, long: boolean): StoreDirectory {
  let isOpen = true
  return {
    path,
    keeps: (now) => {
      if (!isOpen || long) return
      try {
        sayWho(lock, now)
      } catch (error) {
        // A full disk is no reason to lose an agent; whoever waits then knows less.
        if (errnoOf(error) === undefined) throw error
      }
    },
    close: () => {
      isOpen = false
      closeSync(lock)
    },
  }
}

/** The store of a path, for looking only: no lock is taken and nothing is made. */
export async function findStoreDirectory(path: string, files: DurableFiles): Promise<string> {
  const real = canonical(path)
  const version = await files.read(join(real, 'version'))
  if (version !== null) refuseVersion(real, version)
  return real
}

function canonical(path: string): string {
  try {
    return realpathSync(path)
  } catch (cause) {
    throw new PuzzledError('state-unreadable', `Cannot look into "${path}": ${errnoOf(cause) ?? cause}`, {
      cause,
    })
  }
}

function openDirectory(path: string): number {
  try {
    return openRoot(path)
  } catch (cause) {
    throw new PuzzledError(
      'state-unreadable',
      `Cannot open the state directory "${path}": ${errnoOf(cause) ?? cause}`,
      { cause },
    )
  }
}

function makeRoot(path: string): string {
  try {
    // Before anything is made: what is refused must not leave an empty directory behind.
    withFd(openRoot(nearestExisting(path)), (fd) => refuseFilesystem(fd, path))
    makeDirectories(path)
    return realpathSync(path)
  } catch (cause) {
    if (cause instanceof PuzzledError) throw cause
    throw new PuzzledError(
      'state-unreadable',
      `Cannot use "${path}" as the state directory: ${refusalOf(errnoOf(cause) ?? String(cause))}`,
      {
        cause,
        hint: 'Name another one with --state-dir.',
      },
    )
  }
}

/** One level at a time: Node's recursive mkdir never returns where a parent exists and refuses with ENOENT (/proc). */
function makeDirectories(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EEXIST') return
    if (errno !== 'ENOENT' || existsSync(dirname(path))) throw error
    makeDirectories(dirname(path))
    mkdirSync(path, { mode: 0o700 })
  }
}

const nearestExisting = (path: string): string =>
  existsSync(path) || path === dirname(path) ? path : nearestExisting(dirname(path))

function refuseFilesystem(fd: number, path: string): void {
  const { type } = fstatfs(fd)
  const refused = unsuitableState(path, type, process.env.PUZZLED_ALLOW_VOLATILE_STATE === '1')
  if (refused !== undefined) throw refused
}

function checkRoot(fd: number, path: string): void {
  refuseFilesystem(fd, path)
  const { uid, mode } = statFd(fd)
  if (uid !== process.geteuid?.())
    throw new PuzzledError('state-unsuitable', `The state directory "${path}" belongs to uid ${uid}`, {
      hint: 'It must belong to the user that puzzled runs as.',
    })
  if ((mode & 0o077) !== 0) fchmod(fd, 0o700)
}

/** Something else in the place of a part is found now, not in the middle of a commit. */
function checkParts(root: string): void {
  const found = (name: string): Stats | undefined => statSync(join(root, name), { throwIfNoEntry: false })
  for (const name of STORE_FOLDERS)
    if (found(name)?.isDirectory() === false) throw unusablePart(join(root, name), 'ENOTDIR')
  for (const name of STORE_FILES)
    if (found(name)?.isFile() === false) throw unusablePart(join(root, name), 'EISDIR')
}

function takeLock(root: string, long: boolean): number {
  const lock = openSync(join(root, 'lock'), 'a+', 0o600)
  try {
    if (!tryLock(lock)) throw locked(root)
    sayWho(lock, long)
    return lock
  } catch (error) {
    closeSync(lock)
    throw error
  }
}

const LONG = 'for long'

/** Whoever reads in between sees a holder that says less, never a wrong one. */
function sayWho(lock: number, long: boolean): void {
  ftruncateSync(lock, 0)
  writeSync(lock, `${process.pid}\n${long ? `${LONG}\n` : ''}`)
}

function locked(root: string): PuzzledError {
  const [holder = '', how] = readFileSync(join(root, 'lock'), 'utf8').split('\n')
  return new PuzzledError('state-locked', `The store "${root}" is in use by process ${holder || 'unknown'}`, {
    hint: 'If that is the daemon, let it answer: leave --state-dir out. Otherwise wait for it to end.',
    data: { holder, long: how === LONG },
  })
}

async function checkVersion(root: string, files: DurableFiles): Promise<void> {
  const path = join(root, 'version')
  const bytes = await files.read(path)
  if (bytes === null) return files.writeRecord(path, Buffer.from(`${STORE_VERSION}\n`))
  refuseVersion(root, bytes)
}

function refuseVersion(root: string, bytes: Buffer): void {
  const path = join(root, 'version')
  const text = bytes.toString('latin1').trim()
  if (!/^\d{1,9}$/.test(text))
    throw new PuzzledError('record-damaged', `"${path}" is damaged: it does not hold a version`, {
      hint: `It was kept. If the store is of this version, write "${STORE_VERSION}" into it.`,
    })
  if (Number(text) > STORE_VERSION)
    throw new PuzzledError(
      'state-newer',
      `The store "${root}" has version ${text}, this puzzled knows ${STORE_VERSION}`,
      {
        hint: 'A newer puzzled wrote it. Use that one; nothing was changed.',
      },
    )
}
