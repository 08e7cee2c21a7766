import { readdir, readFile } from 'node:fs/promises'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import type { RecordFiles } from './record-files.ts'

const readOnly = (): Promise<never> => {
  throw new PuzzledError('internal', 'These records are open for reading')
}

/** Records of a store that somebody else owns, for tools that only look. */
export const readRecords: RecordFiles = {
  async read(path) {
    try {
      return await readFile(path)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null
      throw error
    }
  },
  list: (path) => readdir(path),
  writeRecord: readOnly,
  append: readOnly,
}
