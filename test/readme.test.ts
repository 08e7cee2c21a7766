import { existsSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { documents, readDocument } from './e2e/stage/documents.ts'

const repository = fileURLToPath(new URL('..', import.meta.url))
const exists = (path: string): boolean => existsSync(repository + path)
const manifest = JSON.parse(readDocument('package.json'))

/** Written by `npm run bench`, on the machine that was measured. */
const MEASURED = 'docs/benchmarks.md'

const spansOf = (text: string): string[] => [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span ?? '')

/** Commands a reader is told to type: lines of blocks, and code spans, without comments, prompts and sudo. */
function commandsOf(text: string): string[] {
  const blocks = [...text.matchAll(/```(?:sh|console)\n(.*?)```/gs)].flatMap(([, body]) =>
    (body ?? '').split('\n'),
  )
  return [...blocks, ...spansOf(text)]
    .flatMap((line) => line.replace(/\s#.*$/, '').split('&&'))
    .map((line) =>
      line
        .trim()
        .replace(/^\w*\$ /, '')
        .replace(/^sudo /, ''),
    )
    .filter((line) => /^(npm|npx|puzzlectl|\.ci)\b/.test(line))
}

/** Relative links, as paths in the repository. */
const linksOf = (document: string, text: string): string[] =>
  [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, link]) =>
    posix.join(posix.dirname(document), link ?? ''),
  )

/** Links to a heading, as `path#heading`. */
const anchorsOf = (document: string, text: string): string[] =>
  [...text.matchAll(/\]\(([^)#:]*)#([^)]+)\)/g)].map(
    ([, link, anchor]) =>
      `${link === '' ? document : posix.join(posix.dirname(document), link ?? '')}#${anchor}`,
  )

/** What a forge makes of headings. */
const headingsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    (heading ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  )

const headingIsThere = (target: string): boolean => {
  const [path = '', anchor = ''] = target.split('#')
  return exists(path) && headingsOf(readDocument(path)).includes(anchor)
}

/** Names of files and folders of this repository, where a code span is one; a star stands for any name. */
const pathsOf = (text: string): string[] =>
  spansOf(text).filter((span) =>
    /^(daemon|ctl|test|tools|policies|docs|systemd|selinux|bpf)\/[\w./@*-]*(\.\w+|\/)$/.test(span),
  )

const isThere = (path: string): boolean => {
  if (!path.includes('*')) return path === MEASURED || exists(path)
  const pattern = new RegExp(`^${posix.basename(path).replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
  const folder = posix.dirname(path)
  return exists(folder) && readdirSync(repository + folder).some((name) => pattern.test(name))
}

describe.each(documents())('%s', (document) => {
  const text = readDocument(document)

  it('links to files that exist', () =>
    expect(linksOf(document, text).filter((link) => !exists(link))).toEqual([]))

  it('links to headings that exist', () =>
    expect(anchorsOf(document, text).filter((target) => !headingIsThere(target))).toEqual([]))

  it('names files that exist', () => expect(pathsOf(text).filter((path) => !isThere(path))).toEqual([]))

  it('names npm scripts that exist', () => {
    const scripts = commandsOf(text).flatMap((line) => /^npm run ([\w:]+)/.exec(line)?.[1] ?? [])
    expect(scripts.filter((name) => !(name in manifest.scripts))).toEqual([])
  })
})

it('a file or a link that is not there would be noticed', () => {
  expect(pathsOf('see `daemon/no/such.ts`').filter((path) => !isThere(path))).toHaveLength(1)
  expect(linksOf('docs/a.md', '[x](../no.md)')).toEqual(['no.md'])
  expect(anchorsOf('docs/a.md', '[x](#b) [y](c.md#d)')).toEqual(['docs/a.md#b', 'docs/c.md#d'])
  expect(['README.md#try-it', 'README.md#no'].map(headingIsThere)).toEqual([true, false])
})

it('every document can be reached from the README', () => {
  const reached = new Set<string>()
  const visit = (document: string): void => {
    if (reached.has(document)) return
    reached.add(document)
    for (const link of linksOf(document, readDocument(document))) if (link.endsWith('.md')) visit(link)
  }
  visit('README.md')
  expect(documents().filter((document) => document !== MEASURED && !reached.has(document))).toEqual([])
})

it('every decision is in the index', () => {
  const linked = linksOf('docs/decisions/README.md', readDocument('docs/decisions/README.md'))
  const pages = readdirSync(`${repository}docs/decisions`).filter((name) => name !== 'README.md')
  expect(linked).toEqual(pages.sort().map((name) => `docs/decisions/${name}`))
})

it('every dependency has its line in the decision page, in its version', () => {
  const page = readDocument('docs/decisions/dependencies.md')
  const all = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
  expect(all.filter(([name, version]) => !page.includes(`\`${name}\` ${version}`))).toEqual([])
})

it('the README shows the two commands: one that runs, one that tests', () => {
  const commands = commandsOf(readDocument('README.md'))
  expect(commands).toEqual(expect.arrayContaining(['npm ci', 'npm test']))
  expect(commands.some((line) => line.startsWith('npx puzzlectl run -- '))).toBe(true)
})
