import { describe, expect, it } from 'vitest'
import { layerViolation } from './architecture/layers.ts'
import { inexactVersions, namedHosts, unreadInstallScripts } from './architecture/packages.ts'
import { machinePlaces, mentions } from './architecture/places.ts'
import { impurities, isMarkedPure } from './architecture/purity.ts'
import {
  anyTypes,
  isTestFile,
  LIMITS,
  leftovers,
  linesOf,
  longFunctions,
  processExits,
  quantile,
  strayFfi,
} from './architecture/rules.ts'
import { unexplainedCalls } from './architecture/safety.ts'
import { committedFiles, parse, readCommitted, repository, type Source } from './architecture/source.ts'

const files = committedFiles()
const isCode = (path: string): boolean => /\.(ts|mjs|c|h|rego|sh)$/.test(path) && !isGenerated(path)
const isGenerated = (path: string): boolean =>
  /^(daemon\/kernel\/uapi\/|policies\/(schema|dist)\/|bpf\/vmlinux)/.test(path) || path.includes('/prebuilt/')
const sources = files
  .filter((path) => /\.(ts|mjs)$/.test(path) && !isGenerated(path))
  .map((path) => parse(path, readCommitted(path)))
const isPure = (path: string): boolean => files.includes(path) && isMarkedPure(readCommitted(path))

describe('the import table', () => {
  const check = (source: Source, pure = isPure): string[] =>
    source.imports.flatMap((entry) => {
      const problem = layerViolation(source, entry, pure)
      return problem === undefined ? [] : [`${source.path}:${entry.line} ${problem}`]
    })

  it('holds', () => expect(sources.flatMap((source) => check(source))).toEqual([]))

  it.each([
    ['daemon/lib/a.ts', "import { x } from '../kernel/b.ts'"],
    ['daemon/policy/a.ts', "import { x } from '../kernel/b.ts'"],
    ['daemon/branch/a.ts', "import { x } from '../sandbox/b.ts'"],
    ['daemon/branch/a.ts', "export { x } from '../sandbox/b.ts'"],
    ['daemon/branch/a.ts', "const x = await import('../agent/b.ts')"],
    ['daemon/kernel/a.test.ts', "import { x } from '../branch/b.ts'"],
    ['daemon/api/a.ts', "import { x } from '../main.ts'"],
    ['ctl/a.ts', "import { x } from '../daemon/kernel/b.ts'"],
    ['ctl/a.ts', "import { x } from '../daemon/embedded.ts'"],
  ])('refuses in %s: %s', (path, text) => expect(check(parse(path, text))).toHaveLength(1))

  it('lets features share types of pure files only', () => {
    const source = parse('daemon/branch/a.ts', "import type { X } from '../sandbox/b.ts'")
    expect(check(source, () => true)).toEqual([])
    expect(check(source, () => false)).toHaveLength(1)
  })
})

describe('pure files', () => {
  const check = (text: string, pure = isPure): string[] =>
    impurities(parse('daemon/branch/a.ts', `// pure\n${text}`), pure)

  it('are pure', () => expect(sources.flatMap((source) => impurities(source, isPure))).toEqual([]))

  it.each([
    "import { readFileSync } from 'node:fs'",
    "import { randomBytes } from 'node:crypto'",
    "import { x } from './other.ts'",
    'export const a = Date.now()',
    'export const a = new Date()',
    'export const a = Math.random()',
    'export const a = () => process.env.HOME',
    'export const a = (process as { pid: number }).pid',
    'export const a = { crypto }',
    "export const a = () => import('./b.ts')",
    'export const a = import.meta.url',
    'await a()',
  ])('may not contain %s', (text) => expect(check(text, () => false).length).toBeGreaterThan(0))

  it('may hash, handle bytes, read a given date and name a property "process"', () => {
    const text = `import { createHash } from 'node:crypto'
      import { Buffer } from 'node:buffer'
      import { y } from './pure.ts'
      export const a = (x: { process: number }) => [createHash, Buffer, y, new Date(0), x.process, { process: 1 }]`
    expect(check(text, () => true)).toEqual([])
  })
})

describe('sizes', () => {
  it(`no file of code has more than ${LIMITS.file} lines`, () => {
    const long = files.filter((path) => isCode(path) && linesOf(readCommitted(path)) > LIMITS.file)
    expect(long).toEqual([])
  })

  it('most files are small', () => {
    const sizes = files
      .filter((path) => isCode(path) && !isTestFile(path))
      .map((path) => linesOf(readCommitted(path)))
    expect(quantile(sizes, 0.9)).toBeLessThanOrEqual(LIMITS.mostFiles)
    expect(quantile(sizes, 0.5)).toBeLessThanOrEqual(LIMITS.medianFile)
  })

  it(`no function has more than ${LIMITS.function} lines`, () =>
    expect(sources.flatMap(longFunctions)).toEqual([]))

  it('are measured', () => {
    const body = 'x()\n'.repeat(LIMITS.function)
    expect(linesOf('a\nb\n')).toBe(2)
    expect(quantile([1, 2, 100], 0.5)).toBe(2)
    expect(quantile([1, 2, 100], 0.9)).toBe(100)
    expect(longFunctions(parse('daemon/a.ts', `const f = () => {\n${body}}`))).toHaveLength(1)
    const nested = `describe('a', () => {\n it('b', () => {\n${body} })\n it('c', () => {}) })`
    expect(longFunctions(parse('daemon/a.test.ts', nested))).toHaveLength(1)
    expect(longFunctions(parse('daemon/a.test.ts', nested.replace(body, 'x()\n')))).toEqual([])
  })
})

describe('every file', () => {
  it('does without any', () => {
    expect(anyTypes(parse('a.ts', 'let x: Array<any>'))).toHaveLength(1)
    expect(sources.flatMap(anyTypes)).toEqual([])
  })

  it('leaves koffi to daemon/kernel', () => {
    for (const text of ["import koffi from 'koffi'", "createRequire(import.meta.url)('koffi')"])
      expect(strayFfi(parse('daemon/branch/a.ts', text))).toHaveLength(1)
    expect(sources.flatMap(strayFfi)).toEqual([])
  })

  it('says at every call of C why it is safe', () => expect(sources.flatMap(unexplainedCalls)).toEqual([]))

  it('leaves the end of the process to main.ts', () => {
    expect(processExits(parse('ctl/commands/run.ts', 'process.exit(1)'))).toHaveLength(1)
    expect(sources.flatMap(processExits)).toEqual([])
  })

  it('is finished', () => {
    expect(leftovers(parse('a.ts', ['// TO', 'DO later'].join('')))).toHaveLength(1)
    expect(sources.flatMap(leftovers)).toEqual([])
  })

  it('names no place of the machine it was written on', () => {
    expect(machinePlaces('/home/someone/git/puzzled/', '/root')).toEqual([
      '/home/someone/git/puzzled',
      '/home/someone/git',
      '/home/someone',
    ])
    expect(machinePlaces('/depot/puzzled/', '/root')).toEqual(['/depot/puzzled', '/depot'])
    expect(mentions('a.md', 'see /depot/other/file', ['/depot'])).toHaveLength(1)
    expect(mentions('a.md', 'see upper/depot/file', ['/depot'])).toEqual([])
    const places = machinePlaces(repository)
    const text = files.filter((path) => !/\.(wasm|o|so|gz)$|prebuilt\//.test(path))
    expect(text.flatMap((path) => mentions(path, readCommitted(path), places))).toEqual([])
  })
})

describe('a call of C', () => {
  const check = (text: string, path = 'daemon/kernel/a.ts'): string[] => unexplainedCalls(parse(path, text))
  const raw = "import { syscall, trySyscall as ask } from './ffi.ts'\n"
  const bound = "function lib() { return { open: load('x').func('int open(void)') } }\n"

  it.each([
    `${raw}syscall('close', NR.close, 3)`,
    `${raw}const r = ask(NR.close, 3)`,
    `${raw}// SAFETY: integers only.\nsyscall('a', 1)\n\nsyscall('b', 2)`,
    `${raw}// SAFETY:\nsyscall('close', NR.close, 3)`,
    `${bound}lib().open()`,
    `${bound}await settled((done) => lib().open.async(done))`,
    `${bound}const library = lib()\nconst use = (library) => library.open()`,
    `${bound}class A { readonly #library = lib()\n\n close() { this.#library.open() } }`,
    "function f() { return load('x').func('int f(void)') }\nf()()",
  ])('is refused without its reason: %s', (text) => expect(check(text)).toHaveLength(1))

  it('passes with its reason, and one reason is enough for a paragraph', () => {
    expect(check(`${raw}// SAFETY: integers only.\nsyscall('a', 1)\nsyscall('b', 2)`)).toEqual([])
    expect(check(`${bound}// SAFETY: takes nothing.\nlib().open()`)).toEqual([])
    expect(check(`${raw}syscall('a', 1)`, 'daemon/branch/a.ts')).toEqual([])
  })
})

describe('packages', () => {
  const lock = JSON.parse(readCommitted('package-lock.json'))

  it('have exact versions', () => {
    expect(
      inexactVersions({ dependencies: { a: '^1.0.0', b: '1.0.0' }, overrides: { c: 'latest' } }),
    ).toHaveLength(2)
    expect(inexactVersions(JSON.parse(readCommitted('package.json')))).toEqual([])
  })

  it('run no install script that nobody has read', () => {
    const entry = { version: '1.0.0', hasInstallScript: true }
    expect(
      unreadInstallScripts({ packages: { 'node_modules/a': entry, 'node_modules/koffi': entry } }),
    ).toHaveLength(2)
    expect(unreadInstallScripts(lock)).toEqual([])
  })

  it('are named without a host', () => {
    expect(namedHosts({ packages: { a: { resolved: 'https://host.example/a.tgz' } } })).toHaveLength(1)
    expect(namedHosts(lock)).toEqual([])
  })
})
