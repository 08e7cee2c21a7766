import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import type { Changeset } from '../../daemon/contract/changeset.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, root } from '../tier/needs.ts'
import type { TestBranch } from './branches.ts'
import { CommitGround, describeTree, NO_HOOKS, sh, temporary } from './commit-ground.ts'
import { missingFor } from './filesystems.ts'

/**
 * Swaps a directory of the base for a symlink to a place outside, as fast as it can. It stands in for a process of the
 * user who owns the base.
 */
const SWAPPER = `
const { parentPort, workerData } = require('node:worker_threads')
const fs = require('node:fs')
const { path, outside, counter } = workerData
const count = new Int32Array(counter)
const stop = () => Atomics.load(count, 1) === 1
parentPort.postMessage('ready')
while (!stop()) {
  fs.renameSync(path, path + '.real')
  fs.symlinkSync(outside, path)
  fs.unlinkSync(path)
  fs.renameSync(path + '.real', path)
  Atomics.add(count, 0, 1)
  // Now and then a commit must get its turn, or the test would show nothing but refusals.
  if (Math.random() < 0.01) Atomics.wait(count, 1, 0, Math.random() * 150)
}
parentPort.close()
`

/** How many exchanges, and how many branches are committed beside them. */
const RACES = [
  { kind: 'host', rounds: roundsOf('PUZZLED_RACE_ROUNDS').rounds, branches: 60 },
  { kind: 'ext4', rounds: roundsOf('PUZZLED_RACE_IMAGE_ROUNDS').rounds, branches: 12 },
  { kind: 'btrfs', rounds: roundsOf('PUZZLED_RACE_IMAGE_ROUNDS').rounds, branches: 12 },
] as const

async function swapping(
  path: string,
  outside: string,
): Promise<{ rounds: () => number; stop: () => Promise<void> }> {
  const counter = new SharedArrayBuffer(8)
  const worker = new Worker(SWAPPER, { eval: true, workerData: { path, outside, counter } })
  await new Promise((resolve) => worker.once('message', resolve))
  const count = new Int32Array(counter)
  return {
    rounds: () => Atomics.load(count, 0),
    stop: async () => {
      Atomics.store(count, 1, 1)
      await new Promise((resolve) => worker.once('exit', resolve))
    },
  }
}

describe('a base directory that is swapped for a symlink during commits', () => {
  describe.each(RACES)('on $kind', (race) => {
    const it = needs(root, missingFor(race.kind))
    const ground = new CommitGround(race.kind)

    it('lets nothing land outside the base', { timeout: 600_000 }, async () => {
      const outside = temporary('outside-')
      writeFileSync(join(outside, 'victim'), 'untouched')
      for (let n = 0; n < race.branches; n++) writeFileSync(join(outside, `old-${n}`), 'untouched')
      const before = describeTree(outside)
      const pending = await prepare(ground, race.branches)
      const swaps = await swapping(join(ground.base, 'dir'), outside)
      const results = new Map<string, number>()
      let attempts = 0
      while (swaps.rounds() < race.rounds || attempts < 2 * race.branches) {
        attempts++
        const next = pending.shift()
        if (next === undefined) break
        const outcome = await ground.committer.commit(next.branch.record, next.changeset, NO_HOOKS).then(
          () => 'landed',
          (error: { code?: string }) => error.code ?? String(error),
        )
        results.set(outcome, (results.get(outcome) ?? 0) + 1)
        if (outcome !== 'landed') pending.push(next)
      }
      while (swaps.rounds() < race.rounds) await new Promise((resolve) => setTimeout(resolve, 10))
      await swaps.stop()
      const after = describeTree(outside)
      rmSync(outside, { recursive: true })
      console.log(
        `${race.kind}: ${swaps.rounds()} swaps, ${attempts} commits: ${JSON.stringify(Object.fromEntries(results))}`,
      )
      expect(after).toEqual(before)
      // How many commits meet the link is up to the scheduler; a refusal must be one that a met link explains:
      // after INTENT that is a commit which can neither go on nor back through the link, and says so.
      expect(results.get('landed') ?? 0).toBeGreaterThan(0)
      for (const outcome of results.keys())
        expect(['landed', 'conflict', 'changed-since-review', 'not-writable', 'stuck']).toContain(outcome)
      for (const name of readdirSync(join(ground.base, 'dir')).filter((name) => name.startsWith('new-')))
        expect(readFileSync(join(ground.base, 'dir', name), 'utf8')).toBe('new\n')
    })
  })
})

/** Branches that each change one file of the directory and add another, made while nobody swaps anything. */
async function prepare(
  ground: CommitGround,
  branches: number,
): Promise<{ branch: TestBranch; changeset: Changeset }[]> {
  mkdirSync(join(ground.base, 'dir'))
  for (let n = 0; n < branches; n++) writeFileSync(join(ground.base, 'dir', `old-${n}`), 'old')
  const pending = []
  for (let n = 0; n < branches; n++) {
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(`echo new > dir/new-${n}; echo changed > dir/old-${n}`, view))
    pending.push({ branch, changeset: await ground.diff(branch) })
  }
  return pending
}

describe.skipIf(root)('somebody who writes to the layers during the commit', () => {
  const ground = new CommitGround()

  it('gets only approved bytes into the base, or a refusal', { timeout: 600_000 }, async () => {
    const seen = { landed: 0, refused: 0 }
    for (let n = 0; n < 60; n++) {
      const branch = await ground.fork()
      const name = `file-${n}`
      ground.work(branch, (view) => sh(`head -c 3000000 /dev/zero > ${name}`, view))
      const changeset = await ground.diff(branch)
      const upper = join(ground.store.directory(branch.record.id), 'layers', '001', '0', 'upper', name)
      const write = (): void => writeFileSync(upper, 'x', { flag: 'r+' })
      // Some rounds write before the commit looks, some after it staged, some while it works.
      const hooks = n % 3 === 0 ? { ...NO_HOOKS, beforeIntent: async () => write() } : NO_HOOKS
      const racing = n % 3 === 1 ? setTimeout(write, n % 20) : undefined
      if (n % 3 === 2 && n % 2 === 0) write()
      const outcome = await ground.committer.commit(branch.record, changeset, hooks).then(
        () => 'landed' as const,
        (error: { code: string }) => {
          expect(error.code).toBe('changed-since-review')
          return 'refused' as const
        },
      )
      clearTimeout(racing)
      seen[outcome]++
      if (outcome === 'landed')
        expect(readFileSync(join(ground.base, name)).every((byte) => byte === 0)).toBe(true)
      else expect(readdirSync(ground.base)).not.toContain(name)
    }
    console.log(JSON.stringify(seen))
    expect(seen.landed).toBeGreaterThan(0)
    expect(seen.refused).toBeGreaterThan(0)
  })
})

describe.skipIf(root)('a commit whose thread dies in the middle', () => {
  const ground = new CommitGround()

  it('keeps nobody else out of the base', { timeout: 600_000 }, async () => {
    const [first, second] = [await ground.fork(), await ground.fork()]
    ground.work(first, (view) => sh('echo first > first', view))
    ground.work(second, (view) => sh('echo second > second', view))
    const changesets = [await ground.diff(first), await ground.diff(second)] as const
    const dying = ground.committer.commit(first.record, changesets[0], {
      ...NO_HOOKS,
      beforeIntent: () => ground.committer.close(),
    })
    await expect(dying).rejects.toMatchObject({ code: 'stuck' })
    await ground.commit(second, changesets[1])
    expect(readdirSync(ground.base)).toEqual(['second'])
    expect(await ground.committer.recover()).toContainEqual(expect.objectContaining({ fate: 'swept' }))
    expect(readdirSync(ground.base)).toEqual(['second'])
  })
})
