import { mkdir, open, readdir, readFile, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errnoOf } from './errors.ts'
import { failpoint } from './failpoint.ts'

/**
 * Small records that are old or new after a power cut, never half. Everything is durable when the promise resolves.
 * For the records of the store; the trees of a commit have a port of their own (`Disk`).
 */
export interface DurableFiles {
  /** Null when there is no such file. */
  read(path: string): Promise<Buffer | null>
  /** Replaces the whole file: temporary file, fsync, rename, fsync of the directory. */
  writeRecord(path: string, bytes: Uint8Array): Promise<void>
  /** Adds to the end of a file; creates it. A torn addition can be left behind by a power cut. */
  append(path: string, bytes: Uint8Array): Promise<void>
  /** False when it exists already. */
  makeDirectory(path: string): Promise<boolean>
  /** Moves a file or a directory; the target must not exist as a file or a filled directory. */
  move(from: string, to: string): Promise<void>
  list(path: string): Promise<string[]>
}

/** A name that no record has: what a power cut leaves of it is overwritten by the next write. */
export const temporaryOf = (path: string): string => join(dirname(path), `.${basename(path)}.new`)

/** The real thing, on Node's file calls: nothing here blocks the event loop. */
export const nodeFiles: DurableFiles = {
  async read(path) {
    try {
      return await readFile(path)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null
      throw error
    }
  },

  async writeRecord(path, bytes) {
    await writeSynced(temporaryOf(path), 'w', bytes)
    failpoint('record.written')
    await rename(temporaryOf(path), path)
    failpoint('record.renamed')
    await syncDirectory(dirname(path))
    failpoint('record.durable')
  },

  async append(path, bytes) {
    await writeSynced(path, 'a', bytes)
    await syncDirectory(dirname(path))
  },

  async makeDirectory(path) {
    try {
      await mkdir(path, { mode: 0o700 })
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false
      throw error
    }
    await syncDirectory(dirname(path))
    return true
  },

  async move(from, to) {
    await rename(from, to)
    failpoint('record.moved')
    await syncDirectory(dirname(to))
    if (dirname(from) !== dirname(to)) await syncDirectory(dirname(from))
  },

  async list(path) {
    return (await readdir(path)).sort()
  },
}

async function writeSynced(path: string, flags: 'w' | 'a', bytes: Uint8Array): Promise<void> {
  const file = await open(path, flags, 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncDirectory(path: string): Promise<void> {
  const dir = await open(path, 'r')
  try {
    await dir.sync()
  } finally {
    await dir.close()
  }
}
