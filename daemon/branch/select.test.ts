import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Change, Changeset, NodeState, NodeType } from '../contract/changeset.ts'
import { compareChanges, sealChangeset } from './changeset.ts'
import { globMatcher, selectChanges } from './select.ts'

const node = (type: NodeType): NodeState => ({
  type,
  mode: 0o644,
  uid: 0,
  gid: 0,
  size: 0,
  mtimeNs: 0n,
  xattrs: [],
})

/** `add dir src` as in a diff; the type is `file` when it is not said. */
function changeset(...lines: string[]): Changeset {
  const changes = lines.map((line): Change => {
    const [kind = 'add', types = 'file', path = ''] = line.split(' ')
    const [old, fresh = old] = types.split('>') as NodeType[]
    return {
      base: 0,
      path: Buffer.from(path),
      kind: kind as Change['kind'],
      old: kind === 'add' ? null : node(old ?? 'file'),
      new: kind === 'delete' ? null : node(fresh ?? 'file'),
      findings: [],
    }
  })
  return sealChangeset({ bases: ['/home/u/app'], changes: changes.sort(compareChanges), requests: [] })
}

const select = (from: Changeset, only: string[], except: string[] = []): string[] =>
  selectChanges(from, { only, except }).changes.map((change) => Buffer.from(change.path).toString())

describe('a selection', () => {
  const tree = changeset('add dir src', 'add file src/a.ts', 'add file src/b.ts', 'modify file README.md')

  it('has its own digest and totals', () => {
    const part = selectChanges(tree, { only: ['README.md'], except: [] })
    expect(part.digest).not.toBe(tree.digest)
    expect(part.totals.files).toBe(1)
    expect(selectChanges(tree, { only: [], except: [] }).digest).toBe(tree.digest)
  })

  it('brings the new directories above a file', () =>
    expect(select(tree, ['**/a.ts'])).toEqual(['src', 'src/a.ts']))

  it('leaves out what is excepted', () => {
    expect(select(tree, [], ['src/b.ts'])).toEqual(['README.md', 'src', 'src/a.ts'])
    expect(select(tree, ['src'], ['*.ts'])).toEqual(['src'])
  })

  it('takes everything below a directory that goes, and nothing beside it', () => {
    const gone = changeset(
      'delete dir d',
      'delete file d/a',
      'delete dir d/s',
      'delete file d/s/b',
      'delete file d-x',
      'delete file e',
    )
    expect(select(gone, ['d'])).toEqual(['d', 'd/a', 'd/s', 'd/s/b'])
    expect(select(gone, ['d/a'])).toEqual(['d/a'])
  })

  it('never lands what is excepted: what cannot land without it stays behind', () => {
    const gone = changeset(
      'delete dir d',
      'delete file d/a',
      'delete dir d/s',
      'delete file d/s/b',
      'replace dir>file r',
      'delete file r/a',
      'delete file r/b',
    )
    expect(select(gone, [], ['d/a'])).toEqual(['d/s', 'd/s/b', 'r', 'r/a', 'r/b'])
    expect(select(gone, ['d', 'r'], ['b'])).toEqual(['d/a', 'r/a'])
    expect(select(gone, ['r/a'])).toEqual(['r/a'])
    const made = changeset('add dir n', 'add dir n/m', 'add file n/m/f', 'add file n/o')
    expect(select(made, [], ['=/home/u/app/n/m'])).toEqual(['n', 'n/o'])
    const linked = changeset('add file a', 'add file b', 'add file c')
    const changes = linked.changes.map((change, index) => (index < 2 ? { ...change, hardlink: 1 } : change))
    expect(select({ ...linked, changes }, [], ['b'])).toEqual(['c'])
    expect(() => select(gone, ['r'], ['r'])).toThrow('matches no change')
  })

  it('takes the replaced node above an entry', () => {
    const replaced = changeset('replace file>dir d', 'add file d/n')
    expect(select(replaced, ['d/n'])).toEqual(['d', 'd/n'])
  })

  it('keeps the names of one inode together', () => {
    const linked = changeset('add file a', 'add file b', 'add file c')
    const changes = linked.changes.map((change, index) => (index < 2 ? { ...change, hardlink: 1 } : change))
    expect(select({ ...linked, changes }, ['b'])).toEqual(['a', 'b'])
  })

  it('of nothing is refused', () => expect(() => select(tree, ['nothing'])).toThrow('matches no change'))
})

describe('an exact path', () => {
  const odd = changeset(
    'add dir *',
    'add file *.ts',
    'add file a.ts',
    'add file {a,b}',
    'delete dir d',
    'delete file d/x',
  )
  it.each([
    ['*.ts', ['*.ts']],
    ['{a,b}', ['{a,b}']],
    ['*', ['*']],
  ])('%s is no pattern', (path, expected) => expect(select(odd, [`=/home/u/app/${path}`])).toEqual(expected))
  it('means nothing below it, but what must go with it', () =>
    expect(select(odd, ['=/home/u/app/d'])).toEqual(['d', 'd/x']))
  it('of another base means nothing', () =>
    expect(() => select(odd, ['=/elsewhere/a.ts'])).toThrow('matches no change'))
})

describe('globs', () => {
  it.each([
    ['*.md', 'a/b/x.md', true],
    ['*.md', 'x.mdx', false],
    ['src/*.ts', 'src/a.ts', true],
    ['src/*.ts', 'src/a/b.ts', false],
    ['src/**/*.ts', 'src/a/b.ts', true],
    ['src/**/*.ts', 'src/b.ts', true],
    ['src', 'src/deep/file', true],
    ['src/', 'src/deep/file', true],
    ['./src', 'src/x', true],
    ['?.c', 'a.c', true],
    ['?.c', 'ab.c', false],
    ['[ab].c', 'a.c', true],
    ['[!ab].c', 'a.c', false],
    ['[!ab].c', 'c.c', true],
    ['*.{js,ts}', 'x.ts', true],
    ['*.{js,ts}', 'x.tsx', false],
    ['/home/u/app/src/**', 'src/x', true],
    ['/etc/**', 'src/x', false],
    ['a+b(c).txt', 'a+b(c).txt', true],
    ['a.c', 'abc', false],
    ['**', 'any/thing', true],
  ])('%s on %s: %s', (glob, path, expected) =>
    expect(globMatcher(glob)(Buffer.from(path), '/home/u/app')).toBe(expected),
  )

  it('name bytes that are not UTF-8 as they are shown', () => {
    const name = Buffer.from([0x61, 0xff])
    expect(globMatcher('a\\xff')(name, '/')).toBe(true)
    expect(globMatcher('a?')(Buffer.from('a\n'), '/')).toBe(true)
  })

  it('take the time of their length, whatever they are and whatever names agents choose', () => {
    const name = Buffer.from('a'.repeat(255))
    const deep = Buffer.from('a/'.repeat(2000))
    for (const part of ['*a', '**a', '**/', '{a,*}', '?*', '[ab]*']) {
      const glob = globMatcher(`${part.repeat(40)}*b`)
      expect([glob(name, '/'), glob(deep, '/')]).toEqual([false, false])
    }
    expect(globMatcher(`${'*a'.repeat(40)}*`)(name, '/')).toBe(true)
    expect(() => globMatcher('*'.repeat(2000))).toThrow('at most')
    expect(() => globMatcher('[z-a]')).toThrow('no set of characters')
  })

  it('mean what the regular expression means that they were before', () => {
    const part = fc.constantFrom(
      '*',
      '**',
      '**/',
      '?',
      '[ab]',
      '[!ab]',
      '{a,b*}',
      '{,a/}',
      'a',
      'b',
      '/',
      '.',
      '+',
    )
    const text = fc.array(fc.constantFrom('a', 'b', '/', '.', '+'), { maxLength: 10 })
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), text, (parts, letters) => {
        const [glob, path] = [parts.join(''), letters.join('')]
        fc.pre(!glob.startsWith('/') && !glob.startsWith('./') && !glob.endsWith('/'))
        const expected = expressionOf(glob).test(path)
        expect([glob, path, globMatcher(glob)(Buffer.from(path), '/')]).toEqual([glob, path, expected])
      }),
      { numRuns: 3000 },
    )
  })
})

const SOURCES: Readonly<Record<string, string>> = {
  '**/': '(?:.*/)?',
  '**': '.*',
  '*': '[^/]*',
  '?': '[^/]',
  '[ab]': '[ab]',
  '[!ab]': '[^/ab]',
  '{a,b*}': '(?:a|b[^/]*)',
  '{,a/}': '(?:|a/)',
  '.': '\\.',
  '+': '\\+',
}

/** The globs of this test as a regular expression: right, and slow for some. */
function expressionOf(glob: string): RegExp {
  const tokens = glob.match(/\*\*\/|\*\*|\*|\?|\[!?ab\]|\{[^{}]*\}|[\s\S]/g) ?? []
  const source = tokens.map((token) => SOURCES[token] ?? token).join('')
  return new RegExp(`^${glob.includes('/') ? '' : '(?:.*/)?'}${source}(?:/.*)?$`, 's')
}
