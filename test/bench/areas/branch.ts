import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LayerDiffer } from '../../../daemon/branch/diff.ts'
import { type TestBranch, TestStore } from '../../root/branches.ts'
import { memoryOfDiffAlone } from '../diff-alone.ts'
import type { BenchArea, BenchCase, Notes } from '../harness.ts'
import { findPeer } from '../peers.ts'

/** Fork and diff against what a developer would use: a copy of the tree, and `git status` in a repository. */

const PER_FOLDER = 100
const nameOf = (file: number): string => `folder-${Math.floor(file / PER_FOLDER)}/file-${file}.txt`

function fill(root: string, files: number, text: string): void {
  for (let file = 0; file < files; file++) {
    if (file % PER_FOLDER === 0) mkdirSync(join(root, nameOf(file), '..'), { recursive: true })
    writeFileSync(join(root, nameOf(file)), `${text} ${file}\n`.repeat(30))
  }
}

const endings: (() => void)[] = []
process.on('exit', () => {
  for (const end of endings) end()
})

function atExit(end: () => void): void {
  endings.push(end)
}

function scratch(name: string): string {
  const path = mkdtempSync(join(tmpdir(), `bench-${name}-`))
  atExit(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function newStore(): TestStore {
  const store = new TestStore()
  atExit(() => store.remove())
  return store
}

function createCase(files: number): BenchCase {
  const base = scratch('base')
  fill(base, files, 'base')
  const store = newStore()
  let copies = 0
  return {
    name: `create a branch over ${files} files`,
    baseline: 'cp of the tree',
    goal: 'p50 ≤ 1 ms, the same for every size of the base',
    rounds: files > 1000 ? 5 : 30,
    warmUp: 2,
    candidates: {
      'puzzled: layers': async () => void (await store.fork([base])),
      'puzzled: layers, mounted': async () => {
        const branch = await store.fork([base])
        branch.mount()
        branch.unmount()
      },
      'cp of the tree': () => cpSync(base, join(store.root, `copy-${copies++}`), { recursive: true }),
    },
  }
}

const OURS = 'puzzled diff: both sides hashed, one digest'

/** The same files, changed since their commit; runs git in there. */
function changedRepository(files: number): (...args: string[]) => Buffer {
  const repository = scratch('repository')
  const git = (...args: string[]): Buffer =>
    execFileSync('git', ['-C', repository, '-c', 'user.name=b', '-c', 'user.email=b@localhost', ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 1 << 28,
    })
  fill(repository, files, 'base')
  git('init', '-q')
  git('add', '.')
  git('commit', '-qm', 'base')
  fill(repository, files, 'changed')
  return git
}

/** Every file is modified, the worst case for both: all contents are read and hashed. */
async function diffCase(files: number, goal: string, notes: Notes): Promise<BenchCase> {
  const base = scratch('base')
  fill(base, files, 'base')
  const git = findPeer('git', notes) === undefined ? undefined : changedRepository(files)
  const store = newStore()
  const branch: TestBranch = await store.fork([base])
  fill(branch.mount(), files, 'changed')
  branch.unmount()
  const differ = new LayerDiffer(store)
  const diff = async (): Promise<void> => {
    const changeset = await differ.diff(branch.record)
    if (changeset.changes.length !== files) throw new Error(`${changeset.changes.length} changes`)
  }
  // Of a process of its own: this one keeps what the cases before have taken.
  const peak = memoryOfDiffAlone(store.root, branch.record, files)
  notes.fact(`diff of ${files} changed files: memory of this process at most`, peak / 1e6, 'MB')
  return {
    name: `diff of ${files} changed files`,
    baseline: git === undefined ? OURS : 'git status',
    ...(git === undefined ? { own: true as const } : {}),
    goal,
    rounds: files > 50_000 ? 5 : 10,
    warmUp: 1,
    candidates: {
      [OURS]: diff,
      ...(git === undefined
        ? {}
        : {
            'git status': () => void git('status', '--porcelain'),
            'git diff (reads contents)': () => void git('diff', '--stat'),
          }),
    },
  }
}

export const area: BenchArea = {
  name: 'branch',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: async (notes) => [
    createCase(100),
    createCase(10_000),
    await diffCase(1_000, 'no target', notes),
    await diffCase(10_000, 'p50 ≤ 400 ms', notes),
    await diffCase(100_000, 'p50 ≤ 4 s in ≤ 200 MB', notes),
  ],
}
