import { isAbsolute, resolve } from 'node:path'
import { errnoOf, PuzzledError } from '../daemon/lib/errors.ts'
import { refuseLostDirectory } from './lost-bytes.ts'

/** Where the caller stands; a directory that was removed under their feet is their error and not one of ours. */
export function workingDirectory(): string {
  try {
    const path = process.cwd()
    refuseLostDirectory(path)
    return path
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    throw new PuzzledError('usage', 'The working directory does not exist any more', {
      hint: 'Change to a directory that exists, or give --base and --cwd.',
    })
  }
}

/** A path as the caller means it; one that begins at the root needs no working directory. */
export const fromHere = (path: string): string =>
  isAbsolute(path) ? resolve(path) : resolve(workingDirectory(), path)
