import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, blocksOf } from './blocks.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

/** Every document for people that is or would be committed; the changelog says what was, not what to type. */
export function documents(): string[] {
  return (existsSync(join(repository, '.git')) ? knownToGit() : copied(''))
    .filter((path) => path !== 'CHANGELOG.md')
    .sort()
}

function knownToGit(): string[] {
  const args = ['-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard', '*.md']
  const listed = execFileSync('git', args, { cwd: repository, encoding: 'utf8' }).split('\n')
  return listed.filter((path) => path !== '' && existsSync(join(repository, path)))
}

/** In a copy without history, as in the VM. */
const copied = (folder: string): string[] =>
  readdirSync(join(repository, folder), { withFileTypes: true }).flatMap((entry) => {
    if (entry.isFile() && entry.name.endsWith('.md')) return [folder + entry.name]
    const isOurs = entry.isDirectory() && !/^(node_modules|dist|dist-packages|\..*)$/.test(entry.name)
    return isOurs ? copied(`${folder}${entry.name}/`) : []
  })

export const readDocument = (path: string): string => readFileSync(join(repository, path), 'utf8')

export const documentBlocks = (): Block[] => documents().flatMap((path) => blocksOf(path, readDocument(path)))
