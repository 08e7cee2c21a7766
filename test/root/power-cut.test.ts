import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { land } from '../../daemon/branch/commit.ts'
import { kernelContext } from '../../daemon/branch/commit-environment.ts'
import { LayerSources } from '../../daemon/branch/commit-sources.ts'
import { unpackChanges } from '../../daemon/branch/journal/changes.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { recoverCommits } from '../../daemon/branch/recover.ts'
import { clone } from '../../daemon/kernel/file-data.ts'
import { KillGround } from '../crash/kill-ground.ts'
import { comparable } from '../crash/kill-points.ts'
import { needs, root } from '../tier/needs.ts'
import { NO_HOOKS } from './commit-ground.ts'
import { makePlace, missingFor, type Place } from './filesystems.ts'

const AT = '2026-01-01T00:00:01.000Z'
const MINUTES = 60_000
const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })
}

/**
 * A filesystem in an image whose blocks can be copied at any instant, as a power cut would leave them: what the
 * filesystem had not written by then is not in the copy. Copies share their blocks, so there can be hundreds.
 */
class CutMachine {
  readonly #outer: Place = makePlace('xfs')
  readonly at = join(this.#outer.path, 'at')
  readonly #image = join(this.#outer.path, 'image')
  readonly cuts: string[] = []
  #mounted = false

  constructor(kind: 'ext4' | 'xfs' | 'btrfs') {
    mkdirSync(this.at)
    writeFileSync(this.#image, '')
    truncateSync(this.#image, 320 * 1024 * 1024)
    run(`mkfs.${kind}`, kind === 'ext4' ? '-Fq' : '-fq', this.#image)
    this.mount(this.#image)
  }

  mount(image: string): void {
    run('mount', '-o', 'loop', image, this.at)
    this.#mounted = true
  }

  unmount(): void {
    run('umount', this.at)
    this.#mounted = false
  }

  /** The power is cut here, as far as this copy is concerned. */
  cut(): void {
    const path = join(this.#outer.path, `cut-${this.cuts.length}`)
    const [from, to] = [openSync(this.#image, 'r'), openSync(path, 'w')]
    if (!clone(from, to)) throw new Error('the copy does not share blocks')
    closeSync(from)
    closeSync(to)
    this.cuts.push(path)
  }

  remove(): void {
    if (this.#mounted) this.unmount()
    this.#outer.remove()
  }
}

/** Tells before every call that changes something. */
class SteppingDisk extends KernelDisk {
  constructor(step: (call: string) => void) {
    super()
    const calls =
      'makeDir makeLink copyFile hardLink setMeta setTime rename unlink removeDir writeAt fsync syncfs syncfsBeside'
    for (const call of calls.split(' ') as (keyof KernelDisk)[]) {
      const inner = this[call].bind(this) as (...args: unknown[]) => unknown
      Object.assign(this, {
        [call]: (...args: unknown[]) => {
          step(call)
          return inner(...args)
        },
      })
    }
  }
}

/** A commit that believes that what it wrote is on the disk. */
class ForgetfulDisk extends SteppingDisk {
  constructor(step: (call: string) => void) {
    super(step)
    const forget = { fsync: () => step('fsync'), syncfs: () => step('syncfs') }
    Object.assign(this, { ...forget, syncfsBeside: async () => step('syncfs') })
  }
}

interface Found {
  /** `old` or `new` per cut, or what was wrong with it. */
  verdicts: string[]
  intentAt: number
}

/** One commit, with the power cut before each of its steps and once behind the last. */
async function cutEverywhere(kind: 'ext4' | 'xfs' | 'btrfs', Disk: typeof SteppingDisk): Promise<Found> {
  const machine = new CutMachine(kind)
  try {
    mkdirSync(join(machine.at, 'home'))
    const ground = new KillGround(join(machine.at, 'home'))
    run('sync', '-f', machine.at)
    const old = comparable(ground.tree)
    const { store, job, packed, diff } = ground.landCall()
    const disk = new Disk(() => machine.cut())
    const sources = new LayerSources(
      disk,
      diff.bases.map(({ uppers }) => uppers),
    )
    let intentAt = -1
    const context = kernelContext(store, job.requester, sources, disk)
    const afterIntent = async (): Promise<void> => {
      intentAt = machine.cuts.length
    }
    await land(context, { ...job, changes: packed.flatMap(unpackChanges) }, { ...NO_HOOKS, afterIntent })
    sources.close()
    machine.cut()
    const fresh = comparable(ground.tree)
    machine.unmount()
    return { verdicts: machine.cuts.map((cut) => verdictOn(machine, ground, cut, old, fresh)), intentAt }
  } finally {
    machine.remove()
  }
}

/** The machine comes up again with what the disk had at the cut. */
function verdictOn(machine: CutMachine, ground: KillGround, cut: string, old: string, fresh: string): string {
  machine.mount(cut)
  try {
    const fates = recoverCommits(new KernelDisk(), join(ground.store, 'journal'), AT)
    const now = comparable(ground.tree)
    const left = ground.leftovers(now === fresh)
    if (fates.some(({ fate }) => fate === 'stuck')) return `stuck: ${fates[0]?.reason}`
    if (now !== old && now !== fresh) return `neither:\n${now}`
    if (left.length > 0) return `left over: ${left}`
    return now === fresh ? 'new' : 'old'
  } catch (error) {
    return String(error)
  } finally {
    machine.unmount()
    rmSync(cut)
  }
}

describe.each(['ext4', 'xfs', 'btrfs'] as const)('the power goes during a commit on %s', (kind) => {
  const it = needs(root, missingFor('xfs'), missingFor(kind))

  it('at any of its steps, and the tree is old or new; new once INTENT is durable', {
    timeout: 15 * MINUTES,
  }, async () => {
    const { verdicts, intentAt } = await cutEverywhere(kind, SteppingDisk)
    const count = (what: string): number => verdicts.filter((verdict) => verdict === what).length
    console.log(`${kind}: ${verdicts.length} power cuts, ${count('old')} old, ${count('new')} new`)
    expect(verdicts.filter((verdict) => !['old', 'new'].includes(verdict))).toEqual([])
    expect(count('old')).toBeGreaterThan(10)
    expect(new Set(verdicts.slice(intentAt))).toEqual(new Set(['new']))
    expect(verdicts.length - intentAt).toBeGreaterThan(10)
  })

  it('is noticed by this test where a commit does not sync', { timeout: 15 * MINUTES }, async () => {
    const { verdicts, intentAt } = await cutEverywhere(kind, ForgetfulDisk)
    expect(verdicts.slice(intentAt).filter((verdict) => verdict !== 'new').length).toBeGreaterThan(0)
  })
})
