import { execFileSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WorkerCommitter } from '../../../daemon/branch/committer.ts'
import { LayerDiffer } from '../../../daemon/branch/diff.ts'
import { FileBranchStore } from '../../../daemon/branch/store.ts'
import type { BranchRecord } from '../../../daemon/contract/branch.ts'
import type { Changeset } from '../../../daemon/contract/changeset.ts'
import { nodeFiles } from '../../../daemon/lib/durable.ts'
import { newBranchId } from '../../../daemon/lib/ids.ts'
import { branchRecord } from '../../fakes/branch-record.ts'
import { TestStore } from '../../root/branches.ts'
import type { BenchArea, BenchCase, Notes } from '../harness.ts'
import { findPeer } from '../peers.ts'

/** A durable commit against what a developer would do by hand: copy the files over the base, and sync. */

const ROUNDS = 5
const WARM_UP = 1
const NO_HOOKS = { beforeIntent: async () => undefined, afterIntent: async () => undefined }
const now = (): Date => new Date()
const endings: (() => void)[] = []
process.on('exit', () => {
  for (const end of endings) end()
})

function fill(root: string, files: number, text: string): void {
  for (let file = 0; file < files; file++) {
    const folder = join(root, `folder-${Math.floor(file / 100)}`)
    if (file % 100 === 0) mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `file-${file}`), `${text} ${file}\n`.repeat(100))
  }
}

function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'bench-commit-'))
  endings.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function newStore(): TestStore {
  const store = new TestStore()
  endings.push(() => store.remove())
  for (const folder of ['journal', 'staging', 'trash']) mkdirSync(join(store.root, folder), { mode: 0o700 })
  return store
}

interface Prepared {
  record: BranchRecord
  changeset: Changeset
}

/** A branch that changed every file of a base of its own. */
async function prepare(store: TestStore, files: number): Promise<Prepared> {
  const base = scratch()
  fill(base, files, 'old')
  const branch = await store.fork([base])
  const view = branch.mount()
  fill(view, files, 'new')
  branch.unmount()
  const record = { ...branch.record, createdAt: now().toISOString() }
  return { record, changeset: await new LayerDiffer(store).diff(record) }
}

function copyWithFsync(from: string, to: string): void {
  for (const folder of readdirSync(from))
    for (const name of readdirSync(join(from, folder))) {
      const temporary = join(to, folder, `.${name}`)
      copyFileSync(join(from, folder, name), temporary)
      const file = openSync(temporary, 'r')
      fsyncSync(file)
      closeSync(file)
      renameSync(temporary, join(to, folder, name))
    }
}

function commitCase(files: number, notes: Notes): BenchCase {
  const store = newStore()
  const committer = new WorkerCommitter(store, now)
  const fresh = scratch()
  fill(fresh, files, 'new')
  const targets = ['cp', 'rsync', 'fsync'].map(() => scratch())
  for (const target of targets) fill(target, files, 'old')
  const [byCopy = '', byRsync = '', byFsync = ''] = targets
  const ready = Promise.all(Array.from({ length: ROUNDS + WARM_UP }, () => prepare(store, files)))
  let used = 0
  const rsync = findPeer('rsync', notes)
  const byPeer = {
    'rsync -aI --delete and sync -f': () => {
      execFileSync('rsync', ['-a', '--ignore-times', '--delete', `${fresh}/`, byRsync])
      execFileSync('sync', ['-f', byRsync])
    },
  }
  return {
    name: `commit ${files} changed files, durable`,
    baseline: 'cp -a and sync -f',
    goal: '≤ 1.3, and ≤ 0.2 × fsync of every file',
    rounds: ROUNDS,
    warmUp: WARM_UP,
    candidates: {
      'puzzled: commit': async () => {
        const next = (await ready)[used++]
        if (next === undefined) throw new Error('there is no branch left to commit')
        await committer.commit(next.record, next.changeset, NO_HOOKS)
      },
      'cp -a and sync -f': () => {
        execFileSync('cp', ['-a', `${fresh}/.`, byCopy])
        execFileSync('sync', ['-f', byCopy])
      },
      ...(rsync === undefined ? {} : byPeer),
      'fsync and rename of every file': () => copyWithFsync(fresh, byFsync),
    },
  }
}

/** The commit that took the last one back is itself taken back in the next round. */
async function revertCase(files: number): Promise<BenchCase> {
  const store = newStore()
  const committer = new WorkerCommitter(store, now)
  const { record, changeset } = await prepare(store, files)
  let { commit } = await committer.commit(record, changeset, NO_HOOKS)
  const [fresh, target] = [scratch(), scratch()]
  fill(fresh, files, 'new')
  fill(target, files, 'old')
  return {
    name: `take back a commit of ${files} files, durable`,
    baseline: 'cp -a and sync -f',
    rounds: ROUNDS,
    warmUp: WARM_UP,
    candidates: {
      'puzzled: revert': async () => {
        commit = (await committer.revert(commit, record.requester)).commit
      },
      'cp -a and sync -f': () => {
        execFileSync('cp', ['-a', `${fresh}/.`, target])
        execFileSync('sync', ['-f', target])
      },
    },
  }
}

/** Out of sight at once, whatever the size; the removal itself is in the background. */
async function discardCase(files: number): Promise<BenchCase> {
  const root = scratch()
  for (const folder of ['branches', 'trash']) mkdirSync(join(root, folder))
  const branches = new FileBranchStore(root, nodeFiles, now)
  const [ids, copies]: [string[], string[]] = [[], []]
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    const id = newBranchId()
    await branches.create({ ...branchRecord(id), state: 'discarding' })
    fill(join(branches.directory(id), 'layers'), files, 'new')
    ids.push(id)
    const copy = scratch()
    fill(copy, files, 'new')
    copies.push(copy)
  }
  return {
    name: `discard a branch of ${files} files`,
    baseline: 'rm -r',
    goal: 'p50 ≤ 5 ms',
    rounds: ROUNDS,
    warmUp: WARM_UP,
    candidates: {
      'puzzled: discard': () => branches.discard(ids.pop() ?? ''),
      'rm -r': () => void execFileSync('rm', ['-r', copies.pop() ?? '']),
    },
  }
}

const FILES = Number(process.env.PUZZLED_BENCH_FILES ?? 1000)

export const area: BenchArea = {
  name: 'branch',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  // PUZZLED_BENCH_FILES=10000 for the large one: making six branches of that size takes a minute by itself.
  cases: async (notes) => [commitCase(FILES, notes), await revertCase(FILES), await discardCase(10 * FILES)],
}
