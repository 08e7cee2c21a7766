import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, blocksOf } from './blocks.ts'
import { boldOf, type Inline, spansOf } from './inline.ts'

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

const MANUAL = 'docs/man'
const manualPages = (): string[] => readdirSync(join(repository, MANUAL)).sort()

/** The commands that a manual page shows, as blocks of a shell; what is no command there is an example of a file. */
function manualBlocks(): Block[] {
  return manualPages().flatMap((name) => {
    const path = `${MANUAL}/${name}`
    const shown = readDocument(path).replaceAll('\\-', '-').replaceAll('\\e', '\\')
    const asBlocks = shown
      .replace(/^\.nf\n\.RS 4$/gm, '```sh')
      .replace(/^\.RE\n\.fi$/gm, '```')
      .replace(/^\.\\" situation: (\S+)$/gm, '<!-- situation: $1 -->')
    return blocksOf(path, asBlocks).filter(({ body }) => /^(sudo )?(puzzlectl|puzzled) /.test(body))
  })
}

/** Every block of every document and manual page. */
export const documentBlocks = (): Block[] => [
  ...documents().flatMap((path) => blocksOf(path, readDocument(path))),
  ...manualBlocks(),
]

/** Every piece of code in the prose of every document and manual page. */
export const documentSpans = (): Inline[] => [
  ...documents().flatMap((path) => spansOf(path, readDocument(path))),
  ...manualPages().flatMap((name) => boldOf(`${MANUAL}/${name}`, readDocument(`${MANUAL}/${name}`))),
]
