import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('..', import.meta.url))
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'docs/operations.md',
  'docs/decisions/dependencies.md',
]
const read = (path: string): string => readFileSync(repository + path, 'utf8')
const manifest = JSON.parse(read('package.json'))

/** Commands a reader is told to type: lines of sh blocks, and code spans, without comments and sudo. */
function commandsOf(text: string): string[] {
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, body]) => (body ?? '').split('\n'))
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span ?? '')
  return [...blocks, ...spans]
    .flatMap((line) => line.replace(/\s#.*$/, '').split('&&'))
    .map((line) => line.trim().replace(/^sudo /, ''))
    .filter((line) => /^(npm|npx|puzzlectl|\.ci)\b/.test(line))
}

describe.each(DOCUMENTS)('%s', (document) => {
  const text = read(document)
  const folder = document.includes('/') ? document.replace(/[^/]+$/, '') : ''

  it('links to files that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map(([, link]) => link ?? '')
    expect(links.filter((link) => !existsSync(repository + folder + link))).toEqual([])
  })

  it('names npm scripts that exist', () => {
    const scripts = commandsOf(text).flatMap((line) => /^npm run ([\w:]+)/.exec(line)?.[1] ?? [])
    expect(scripts.filter((name) => !(name in manifest.scripts))).toEqual([])
  })

  it('names verbs and options that puzzlectl has', () => {
    for (const line of commandsOf(text)) {
      const [, verb, rest] = /^(?:npx )?puzzlectl ([a-z]+)(.*)$/.exec(line) ?? []
      if (verb === undefined) continue
      const help = execFileSync(process.execPath, ['dist/puzzlectl.js', verb, '--help'], {
        cwd: repository,
        encoding: 'utf8',
      })
      expect(help, line).toContain(`puzzlectl ${verb}`)
      const own = rest?.split(' -- ')[0] ?? ''
      for (const [option] of own.matchAll(/--[a-z-]+/g)) expect(help, line).toContain(option)
    }
  })
})

it('every dependency has its line in the decision page, in its version', () => {
  const page = read('docs/decisions/dependencies.md')
  const all = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
  expect(all.filter(([name, version]) => !page.includes(`\`${name}\` ${version}`))).toEqual([])
})

it('the README shows the two commands: one that runs, one that tests', () => {
  const commands = commandsOf(read('README.md'))
  expect(commands).toEqual(expect.arrayContaining(['npm ci', 'npm test']))
  expect(commands.some((line) => line.startsWith('npx puzzlectl run -- '))).toBe(true)
})
