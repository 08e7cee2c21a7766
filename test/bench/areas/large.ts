import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WorkerCommitter } from '../../../daemon/branch/committer.ts'
import { LayerDiffer } from '../../../daemon/branch/diff.ts'
import { layerMounts } from '../../../daemon/branch/overlay.ts'
import type { BranchRecord } from '../../../daemon/contract/branch.ts'
import type { Changeset } from '../../../daemon/contract/changeset.ts'
import { TestStore } from '../../root/branches.ts'
import type { BenchArea, BenchCase } from '../harness.ts'

/** One large file, where blocks can be shared between the layer and the base and where they cannot. */

const GIB = Number(process.env.PUZZLED_BENCH_GIB ?? 1)
const ROUNDS = 5
const WARM_UP = 1
const NO_HOOKS = { beforeIntent: async () => undefined, afterIntent: async () => undefined }
const now = (): Date => new Date()
const endings: (() => void)[] = []
process.on('exit', () => {
  for (const end of endings.toReversed()) end()
})
const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })
}

function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'bench-large-'))
  endings.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A filesystem that shares blocks, in a sparse image. */
function sharing(): string {
  const image = join(scratch(), 'image')
  const path = scratch()
  writeFileSync(image, '')
  truncateSync(image, (GIB * 4 + 2) * 2 ** 30)
  run('mkfs.xfs', '-q', image)
  run('mount', '-o', 'loop', image, path)
  endings.push(() => run('umount', path))
  return path
}

async function largeCase(name: string, place: string): Promise<BenchCase> {
  const store = new TestStore(place)
  endings.push(() => store.remove())
  for (const folder of ['journal', 'staging', 'trash']) mkdirSync(join(store.root, folder), { mode: 0o700 })
  const committer = new WorkerCommitter(store, now)
  const large = join(place, 'large')
  run('dd', 'if=/dev/urandom', `of=${large}`, 'bs=4M', `count=${GIB * 256}`, 'status=none')
  type Prepared = { record: BranchRecord; base: string; changeset: Changeset }
  let prepared: Prepared | undefined
  // Into the layer itself: a copy through the mount is on another filesystem than what it is copied from, and shares nothing.
  const prepare = async (): Promise<void> => {
    const base = mkdtempSync(join(place, 'base-'))
    const branch = await store.fork([base])
    const directory = store.directory(branch.record.id)
    const upper = layerMounts(branch.record, directory)[0]?.upper ?? ''
    run('cp', '--reflink=auto', large, join(upper, 'large'))
    run('sync', '-f', place)
    const record = { ...branch.record, createdAt: now().toISOString() }
    prepared = { record, base, changeset: await new LayerDiffer(store).diff(record) }
  }
  // One branch at a time: the disk need not hold all of them.
  const remove = ({ record, base }: Prepared): void => {
    for (const path of [base, store.directory(record.id)]) rmSync(path, { recursive: true })
    for (const name of readdirSync(join(store.root, 'journal')))
      rmSync(join(store.root, 'journal', name), { recursive: true })
    prepared = undefined
  }
  return {
    name: `commit one file of ${GIB} GiB, ${name}`,
    baseline: 'cp --reflink=auto and sync -f',
    rounds: ROUNDS,
    warmUp: WARM_UP,
    before: {
      'puzzled: commit': async () => {
        if (prepared !== undefined) remove(prepared)
        await prepare()
      },
    },
    candidates: {
      'puzzled: commit': async () => {
        if (prepared === undefined) throw new Error('there is no branch to commit')
        await committer.commit(prepared.record, prepared.changeset, NO_HOOKS)
      },
      'cp --reflink=auto and sync -f': () => copy(large, place, '--reflink=auto'),
      'cp --reflink=never and sync -f': () => copy(large, place, '--reflink=never'),
    },
  }
}

function copy(from: string, place: string, how: string): void {
  const to = join(place, 'copied')
  run('cp', how, from, to)
  run('sync', '-f', place)
  rmSync(to)
}

export const area: BenchArea = {
  name: 'large',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: async () => [
    await largeCase('blocks shared', sharing()),
    await largeCase('on the temporary folder’s filesystem', scratch()),
  ],
}
