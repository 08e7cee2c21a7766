import { describe, expect, it } from 'vitest'
import { land } from '../../daemon/branch/commit.ts'
import { recoverCommits } from '../../daemon/branch/recover.ts'
import { contextOf, leftovers, makeWorld, NO_HOOKS, type Trees, treesOf } from '../fakes/commit-world.ts'
import { type ModelDisk, PowerCut } from '../fakes/model-disk.ts'
import type { Fate } from '../fakes/model-state.ts'

const AT = '2026-01-01T00:00:01.000Z'

async function reference(): Promise<{ old: Trees; fresh: Trees; steps: number; calls: string[] }> {
  const { disk, job, context } = makeWorld()
  const old = treesOf(disk)
  const calls: string[] = []
  disk.beforeStep = (_, call) => calls.push(call)
  await land(context, job, NO_HOOKS)
  disk.settle()
  return { old, fresh: treesOf(disk), steps: disk.steps, calls }
}

/** Every subset is too many; these find what a disk really does: nothing, all, one, all but one, and many random ones. */
function fates(unsynced: number, seed: number): ((index: number) => Fate)[] {
  const random = randomOf(seed)
  const singles = Array.from({ length: unsynced }, (_, n) => n)
  return [
    () => 'lost',
    () => 'kept',
    () => 'torn',
    ...singles.map(
      (n) =>
        (index: number): Fate =>
          index === n ? 'kept' : 'lost',
    ),
    ...singles.map(
      (n) =>
        (index: number): Fate =>
          index === n ? 'lost' : 'kept',
    ),
    ...singles.map(
      (n) =>
        (index: number): Fate =>
          index < n ? 'kept' : index === n ? 'torn' : 'lost',
    ),
    ...Array.from({ length: 12 }, () => {
      const chosen = singles.map(
        (): Fate => (['kept', 'lost', 'torn'] as const)[Math.floor(random() * 3)] ?? 'lost',
      )
      return (index: number): Fate => chosen[index] ?? 'lost'
    }),
  ]
}

function randomOf(seed: number): () => number {
  let state = seed * 2654435761 + 1
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Runs the commit until the power goes before step `n`. */
async function dieAt(n: number): Promise<{ disk: ModelDisk; heard: boolean }> {
  const { disk, job, context } = makeWorld()
  disk.beforeStep = (step) => {
    if (step === n) disk.cutPower()
  }
  let heard = false
  try {
    await land(context, job, NO_HOOKS)
    heard = true
  } catch (error) {
    expect(error).toBeInstanceOf(Error)
  }
  disk.beforeStep = undefined
  return { disk, heard }
}

function expectOldOrNew(disk: ModelDisk, trees: { old: Trees; fresh: Trees }, what: string): boolean {
  const now = treesOf(disk)
  const committed = now.one === trees.fresh.one
  expect(now, what).toEqual(committed ? trees.fresh : trees.old)
  expect(leftovers(disk, committed), what).toEqual([])
  return committed
}

describe('a commit on a disk that forgets', () => {
  it('takes durable steps, one syncfs per filesystem before INTENT and one after', async () => {
    const { calls } = await reference()
    expect(calls.filter((call) => call === 'syncfs')).toHaveLength(4)
    expect(calls.filter((call) => call === 'rename-exchange').length).toBeGreaterThan(4)
  })

  it('leaves old or new when the power goes at any step, whatever the disk kept', async () => {
    const trees = await reference()
    let rounds = 0
    const seen = new Set<boolean>()
    for (let step = 1; step <= trees.steps; step++) {
      const { disk, heard } = await dieAt(step)
      for (const [index, fateOf] of fates(disk.unsynced, step).entries()) {
        const machine = disk.fork()
        machine.restart(fateOf)
        recoverCommits(machine, '/store/journal', AT)
        machine.settle()
        const committed = expectOldOrNew(machine, trees, `step ${step}, fate ${index}`)
        if (heard) expect(committed).toBe(true)
        seen.add(committed)
        rounds++
      }
    }
    expect(seen).toEqual(new Set([true, false]))
    console.log(`${trees.steps} steps, ${rounds} power cuts`)
  })

  it('leaves old or new when the power goes again at any step of the recovery', async () => {
    const trees = await reference()
    let rounds = 0
    for (let step = 1; step <= trees.steps; step++) {
      const { disk } = await dieAt(step)
      for (const fateOf of fates(disk.unsynced, step).slice(0, 3))
        rounds += recoverDying(disk, fateOf, trees, step)
    }
    console.log(`${rounds} power cuts during recovery`)
  })

  it('is recovered to the same tree when recovery runs twice', async () => {
    const trees = await reference()
    for (let step = 1; step <= trees.steps; step += 3) {
      const { disk } = await dieAt(step)
      disk.restart(() => 'kept')
      recoverCommits(disk, '/store/journal', AT)
      const first = treesOf(disk)
      recoverCommits(disk, '/store/journal', AT)
      expect(treesOf(disk)).toEqual(first)
      expectOldOrNew(disk, trees, `step ${step}`)
    }
  })
})

/** Dies before each step of one recovery, then recovers for good. Returns the number of cuts. */
function recoverDying(
  disk: ModelDisk,
  fateOf: (index: number) => Fate,
  trees: { old: Trees; fresh: Trees },
  step: number,
): number {
  for (let n = 1; ; n++) {
    const machine = disk.fork()
    machine.restart(fateOf)
    machine.beforeStep = (at) => {
      if (at === n) machine.cutPower()
    }
    let died = false
    try {
      for (const { fate } of recoverCommits(machine, '/store/journal', AT)) died ||= fate === 'stuck'
    } catch (error) {
      if (!(error instanceof PowerCut)) throw error
      died = true
    }
    machine.beforeStep = undefined
    const random = randomOf(n)
    machine.restart(() => (random() < 0.5 ? 'kept' : 'lost'))
    recoverCommits(machine, '/store/journal', AT)
    machine.settle()
    expectOldOrNew(machine, trees, `commit step ${step}, recovery step ${n}`)
    if (!died && machine.steps < n) return n
    if (n > 500) throw new Error('recovery does not end')
  }
}

describe('a commit on a disk that refuses', () => {
  const ERRNOS = ['ENOSPC', 'EIO', 'EDQUOT', 'EROFS'] as const

  it.each(ERRNOS)('leaves old or new when one step fails with %s', async (errno) => {
    const trees = await reference()
    for (let n = 1; n <= trees.steps; n++) {
      const { disk, job, context } = makeWorld()
      disk.beforeStep = (step, call) => {
        if (step === n) throw Object.assign(new Error(`${call}: ${errno}`), { code: errno })
      }
      const heard = await land(context, job, NO_HOOKS).then(
        () => 'committed',
        (error: { code?: string }) => error.code,
      )
      disk.beforeStep = undefined
      recoverCommits(disk, '/store/journal', AT, new Set([job.commit]))
      disk.settle()
      const committed = expectOldOrNew(disk, trees, `${errno} at step ${n}`)
      // What was called a failure must not be done after all, not even by recovery. Only "stuck" leaves it open.
      if (heard !== 'stuck') expect(committed, `step ${n}, heard ${heard}`).toBe(heard === 'committed')
    }
  })

  it.each(ERRNOS)(
    'leaves old or new when every step from one on fails with %s, until it is mended',
    async (errno) => {
      const trees = await reference()
      for (let n = 1; n <= trees.steps; n++) {
        const { disk, job, context } = makeWorld()
        disk.beforeStep = (step, call) => {
          if (step >= n) throw Object.assign(new Error(`${call}: ${errno}`), { code: errno })
        }
        const failed = await land(context, job, NO_HOOKS).then(
          () => null,
          (error: { code?: string }) => error.code ?? 'none',
        )
        expect(failed, `step ${n}`).not.toBe('none')
        disk.beforeStep = undefined
        recoverCommits(disk, '/store/journal', AT, new Set([job.commit]))
        disk.settle()
        expectOldOrNew(disk, trees, `${errno} from step ${n} on`)
      }
    },
  )

  it('comes up again where what was staged cannot be removed, and removes it when the disk is well', async () => {
    const trees = await reference()
    let refused = 0
    for (let n = 1; n <= trees.steps; n++) {
      const { disk } = await dieAt(n)
      disk.restart(() => 'kept')
      disk.beforeStep = (_, call) => {
        if (call !== 'unlink' && call !== 'removeDir') return
        refused++
        throw Object.assign(new Error(`${call}: EIO`), { code: 'EIO' })
      }
      const fates = recoverCommits(disk, '/store/journal', AT)
      expect(
        fates.every(({ fate }) => fate !== 'stuck'),
        `step ${n}`,
      ).toBe(true)
      disk.beforeStep = undefined
      recoverCommits(disk, '/store/journal', AT)
      disk.settle()
      expectOldOrNew(disk, trees, `step ${n}`)
    }
    expect(refused).toBeGreaterThan(0)
  })
})

describe('the test itself', () => {
  it('notices a commit that does not sync what it staged', async () => {
    const trees = await reference()
    let broken = 0
    const { disk, job } = makeWorld()
    const context = contextOf(disk)
    let renames = 0
    disk.syncfs = () => undefined
    disk.beforeStep = (_, call) => {
      if (call === 'rename-exchange' && renames++ === 1) disk.cutPower()
    }
    await land(context, job, NO_HOOKS).catch(() => undefined)
    disk.beforeStep = undefined
    for (const fateOf of fates(disk.unsynced, 1)) {
      const machine = disk.fork()
      machine.restart(fateOf)
      try {
        recoverCommits(machine, '/store/journal', AT)
        machine.settle()
        const now = treesOf(machine)
        if (now.one !== trees.old.one && now.one !== trees.fresh.one) broken++
      } catch {
        // A recovery that cannot read what it needs is noticed as well.
        broken++
      }
    }
    expect(broken).toBeGreaterThan(0)
  })
})
