import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { type DurableFiles, temporaryOf } from './durable.ts'
import { errnoOf } from './errors.ts'
import { failpoint } from './failpoint.ts'

/**
 * The same steps in the same order as `nodeFiles`, for a command, which serves nobody but its own agent meanwhile: to do
 * a thing at once costs a fifth of asking a thread of the pool to, and one record is eight things.
 */
export const commandFiles: DurableFiles = {
  async read(path) {
    try {
      return readFileSync(path)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null
      throw error
    }
  },

  async writeRecord(path, bytes) {
    writeSynced(temporaryOf(path), 'w', bytes)
    failpoint('record.written')
    renameSync(temporaryOf(path), path)
    failpoint('record.renamed')
    syncDirectory(dirname(path))
    failpoint('record.durable')
  },

  async append(path, bytes) {
    writeSynced(path, 'a', bytes)
    syncDirectory(dirname(path))
  },

  async makeDirectory(path) {
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false
      throw error
    }
    syncDirectory(dirname(path))
    return true
  },

  async move(from, to) {
    renameSync(from, to)
    failpoint('record.moved')
    syncDirectory(dirname(to))
    if (dirname(from) !== dirname(to)) syncDirectory(dirname(from))
  },

  async list(path) {
    return readdirSync(path).sort()
  },
}

function writeSynced(path: string, flags: 'w' | 'a', bytes: Uint8Array): void {
  const file = openSync(path, flags, 0o600)
  try {
    writeFileSync(file, bytes)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
