import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, blocksOf } from './blocks.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

/** Every document for people that is or would be committed; the changelog says what was, not what to type. */
export function documents(): string[] {
  const args = ['-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard', '*.md']
  return execFileSync('git', args, { cwd: repository, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && path !== 'CHANGELOG.md')
    .sort()
}

export const readDocument = (path: string): string => readFileSync(join(repository, path), 'utf8')

export const documentBlocks = (): Block[] => documents().flatMap((path) => blocksOf(path, readDocument(path)))
