import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Change, NodeState } from '../../daemon/contract/changeset.ts'
import type { ContentSide } from '../../daemon/contract/engine.ts'
import { makeChange } from '../../test/fakes/changesets.ts'
import { needs, program } from '../../test/tier/needs.ts'
import { gitPatch } from './git-patch.ts'

/** What git knows of a path. Names and contents are characters for bytes. */
interface Node {
  mode: '100644' | '100755' | '120000'
  bytes: string
}
type Tree = Readonly<Record<string, Node>>

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

function stateOf(node: Node | undefined): NodeState | null {
  if (node === undefined) return null
  const bytes = latin1(node.bytes)
  const common = {
    mode: node.mode === '100755' ? 0o755 : 0o644,
    uid: 0,
    gid: 0,
    size: bytes.length,
    mtimeNs: 0n,
    xattrs: [],
  }
  if (node.mode === '120000') return { ...common, type: 'symlink', link: bytes }
  return { ...common, type: 'file', sha256: createHash('sha256').update(bytes).digest('hex') }
}

const sideOf = (node: Node | undefined): ContentSide | null =>
  node === undefined || node.mode === '120000'
    ? null
    : { bytes: latin1(node.bytes), size: latin1(node.bytes).length }

function patchOf(before: Tree, after: Tree): string {
  const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return paths
    .map((path) => {
      const [old, now] = [before[path], after[path]]
      const change: Change = {
        ...makeChange({
          path: latin1(path),
          kind: old === undefined ? 'add' : now === undefined ? 'delete' : 'modify',
        }),
        old: stateOf(old),
        new: stateOf(now),
      }
      return gitPatch(latin1(path), change, { before: sideOf(old), after: sideOf(now) }).text
    })
    .join('')
}

const pathIn = (root: string, name: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), latin1(name)])

function put(root: string, tree: Tree): void {
  for (const [name, { mode, bytes }] of Object.entries(tree)) {
    const path = pathIn(root, name)
    mkdirSync(latin1(dirname(path.toString('latin1'))), { recursive: true })
    if (mode === '120000') symlinkSync(latin1(bytes), path)
    else writeFileSync(path, latin1(bytes))
    if (mode !== '120000') chmodSync(path, mode === '100755' ? 0o755 : 0o644)
  }
}

function treeAt(root: string, below = ''): Tree {
  const tree: Record<string, Node> = {}
  for (const entry of readdirSync(pathIn(root, below), { encoding: 'buffer' })) {
    const name = `${below}${entry.toString('latin1')}`
    const path = pathIn(root, name)
    const stat = lstatSync(path)
    if (stat.isDirectory()) Object.assign(tree, treeAt(root, `${name}/`))
    else if (stat.isSymbolicLink())
      tree[name] = { mode: '120000', bytes: readlinkSync(path, { encoding: 'buffer' }).toString('latin1') }
    else
      tree[name] = {
        mode: (stat.mode & 0o100) === 0 ? '100644' : '100755',
        bytes: readFileSync(path).toString('latin1'),
      }
  }
  return tree
}

/** What a tool makes of a copy of the tree before, given the patch. */
function applied(before: Tree, patch: string, command: readonly string[] = ['git', 'apply', '-']): Tree {
  const root = mkdtempSync(join(tmpdir(), 'puzzled-patch-'))
  try {
    put(root, before)
    const [file = '', ...args] = command
    const env = { PATH: process.env.PATH, GIT_CEILING_DIRECTORIES: dirname(root), HOME: root, LC_ALL: 'C' }
    if (patch !== '')
      execFileSync(file, args, { cwd: root, env, input: latin1(patch), stdio: ['pipe', 'pipe', 'pipe'] })
    return treeAt(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const NAMES = [
  'a',
  'b c',
  'd/e',
  'd/f g',
  'x"y',
  'back\\slash',
  'tab\there',
  'new\nline',
  '\xff\xfe',
  'd\xc3\xa9/z',
  'long '.repeat(9),
]
const name = fc.constantFrom(...NAMES)
const line = fc.constantFrom(
  'one',
  'two',
  '',
  'three\r',
  '--- a/b',
  '\\ no',
  'caf\xc3\xa9',
  '\xe9',
  '@@ -1 +1 @@',
  'diff --git a b',
)
const text = fc
  .tuple(fc.array(line, { maxLength: 12 }), fc.boolean())
  .map(([lines, end]) => `${lines.join('\n')}${end && lines.length > 0 ? '\n' : ''}`)
const binary = fc.uint8Array({ maxLength: 200 }).map((bytes) => `\0${Buffer.from(bytes).toString('latin1')}`)
const file = fc.record({
  mode: fc.constantFrom('100644' as const, '100755' as const),
  bytes: fc.oneof({ weight: 3, arbitrary: text }, binary),
})
const link = fc.record({
  mode: fc.constant('120000' as const),
  bytes: fc.constantFrom('a', '../x y', 'no/where\n', '\xff'),
})
const tree = fc.dictionary(name, fc.oneof({ weight: 4, arbitrary: file }, link), {
  maxKeys: 6,
  noNullPrototype: true,
})

describe('a patch that is applied to the tree before', () => {
  needs(program('git'))('gives the tree after', () => {
    fc.assert(
      fc.property(tree, tree, (before, after) => {
        expect(applied(before, patchOf(before, after))).toEqual(after)
      }),
      { numRuns: 40 },
    )
  })

  needs(program('git'))('also where a file becomes a folder, and a folder a file', () => {
    const before: Tree = { a: { mode: '100644', bytes: 'x\n' }, 'b/c': { mode: '100644', bytes: 'y' } }
    const after: Tree = { 'a/x': { mode: '100755', bytes: '' }, b: { mode: '120000', bytes: 'a/x' } }
    expect(applied(before, patchOf(before, after))).toEqual(after)
  })

  needs(program('git'))('also where almost every line differs', () => {
    const lines = (word: string): string => Array.from({ length: 6000 }, (_, at) => `${word}${at}`).join('\n')
    const before: Tree = { a: { mode: '100644', bytes: `${lines('x')}\n` } }
    const after: Tree = { a: { mode: '100644', bytes: lines('y') } }
    expect(applied(before, patchOf(before, after))).toEqual(after)
  })

  needs(program('patch'))('by patch(1) too, where nothing is binary', () => {
    const before: Tree = { 'b c': { mode: '100644', bytes: 'x\n' }, gone: { mode: '100644', bytes: 'y\n' } }
    const after: Tree = {
      'b c': { mode: '100755', bytes: 'x\nz' },
      l: { mode: '120000', bytes: 'b c' },
      e: { mode: '100644', bytes: '1' },
    }
    expect(applied(before, patchOf(before, after), ['patch', '-s', '-p1'])).toEqual(after)
  })
})

describe('what git has no words for is left out, and said', () => {
  const left = (change: Change, path = 'a') => gitPatch(Buffer.from(path), change, null)
  const because = (words: RegExp) => ({ text: '', left: expect.stringMatching(words) })

  it.each([
    [makeChange({ path: 'a', kind: 'metadata', content: 'x', old: 'x', oldMode: 0o600 }), /permissions/],
    [makeChange({ path: 'a', dir: true }), /directories/],
    [makeChange({ path: 'a', findings: [{ rule: 'device', message: 'it is a device' }] }), /it is a device/],
  ])('%#', (change, words) => expect(left(change)).toEqual(because(words)))

  it('and so is what lies in a .git, is withheld, or is too large', () => {
    expect(left(makeChange({ path: 'd/.Git/hooks/x' }), 'd/.Git/hooks/x')).toEqual(because(/\.git/))
    const change = makeChange({ path: 'a', content: 'abc' })
    const after = { bytes: Buffer.from('ab'), size: 3 }
    expect(gitPatch(Buffer.from('a'), change, { before: null, after })).toEqual(because(/too large/))
    const hidden = { bytes: Buffer.alloc(0), size: 0, withheld: true } as const
    expect(gitPatch(Buffer.from('a'), change, { before: null, after: hidden })).toEqual(
      because(/may not read/),
    )
  })

  it('but not a directory that goes with what was in it', () =>
    expect(left(makeChange({ path: 'a', kind: 'delete', dir: true }))).toEqual({ text: '', left: null }))
})
