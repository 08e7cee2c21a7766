import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { diffJob } from '../../daemon/branch/diff.ts'
import { type DiffJob, type DiffMessage, failureOf, runDiff } from '../../daemon/branch/diff-job.ts'
import { SecondWalker } from '../../daemon/branch/second-walker.ts'
import { hasThread } from '../../daemon/kernel/thread.ts'
import { needs, root } from '../tier/needs.ts'
import { DiffGround, write } from './diff-ground.ts'
import { Dice, growTree, workIn } from './random-tree.ts'

const it = needs(root)
const ground = new DiffGround()

interface Told {
  messages: DiffMessage[]
  records: Buffer
  /** How often the second thread read something. */
  reads: number
}

async function tell(job: DiffJob, second: SecondWalker): Promise<Told> {
  const messages: DiffMessage[] = []
  const chunks: Uint8Array[] = []
  let reads = 0
  try {
    runDiff(
      job,
      (message) => {
        if (message.kind === 'changes') chunks.push(message.bytes)
        else messages.push(message)
        if (message.kind === 'done') reads = readsOf(second.thread)
      },
      second,
    )
  } catch (error) {
    messages.push(failureOf(error))
  } finally {
    await second.end()
  }
  return { messages, records: Buffer.concat(chunks), reads }
}

const alone = (job: DiffJob): Promise<Told> => tell(job, new SecondWalker({ worthStarting: Infinity }))

/** A walk whose second thread is there before the first begins. */
function together(job: DiffJob, prepare: (second: SecondWalker) => void = () => undefined): Promise<Told> {
  const second = new SecondWalker()
  prepare(second)
  second.start()
  for (const end = Date.now() + 60_000; !second.isReady; pause(1))
    if (Date.now() > end) throw new Error('the second thread does not start')
  return tell(job, second)
}

const still = new Int32Array(new SharedArrayBuffer(4))
const pause = (ms: number): void => {
  Atomics.wait(still, 0, 0, ms)
}

function readsOf(thread: number): number {
  if (thread === 0) return 0
  const [, count] = /^syscr: (\d+)$/m.exec(fs.readFileSync(`/proc/self/task/${thread}/io`, 'utf8')) ?? []
  return Number(count)
}

const RUNS = Number(process.env.PUZZLED_MODEL_RUNS ?? 20)

/** A job over a tree of its own below the ground's base. */
async function jobOf(name: string, grow: (base: string) => (view: string) => void): Promise<DiffJob> {
  const base = join(ground.base, name)
  fs.mkdirSync(base)
  const act = grow(base)
  const branch = await ground.store.fork([base])
  try {
    act(branch.mount())
  } finally {
    branch.unmount()
  }
  return diffJob(branch.record, ground.store.directory(branch.record.id))
}

const FLAT = 3000

/** One directory with many files, all of them changed. */
const flatJob = (name: string): Promise<DiffJob> =>
  jobOf(name, (base) => {
    for (let file = 0; file < FLAT; file++) write(join(base, `f${file}`), `${file}`)
    return (view) => {
      for (let file = 0; file < FLAT; file++) write(join(view, `f${file}`), `new ${file}`)
    }
  })

const openFiles = (): string[] => fs.readdirSync('/proc/self/fd')

describe('two threads say what one says', () => {
  it('of whatever trees', async () => {
    let reads = 0
    for (let run = 0; run < RUNS; run++) {
      const seed = Number(process.env.PUZZLED_MODEL_SEED ?? Date.now()) + run
      const dice = new Dice(seed)
      const job = await jobOf(`tree-${run}`, (base) => {
        const folders = growTree(base, dice, 40)
        return (view) => workIn(view, dice, folders, 300)
      })
      const one = await alone(job)
      const two = await together(job)
      expect(two.messages, `seed ${seed}`).toEqual(one.messages)
      expect(two.records.equals(one.records), `seed ${seed}`).toBe(true)
      expect(one.messages.at(-1)?.kind, `seed ${seed}`).toBe('done')
      reads += two.reads
    }
    // Otherwise this compared one thread with itself.
    expect(reads).toBeGreaterThan(RUNS)
  })

  it('of one large directory, with the same progress, and of the thread that is started on the way', async () => {
    const job = await flatJob('flat')
    const one = await alone(job)
    const two = await together(job)
    const late = await tell(job, new SecondWalker({ worthStarting: 0 }))
    expect(two.reads).toBeGreaterThan(100)
    for (const { messages, records } of [two, late]) {
      expect(messages.filter(({ kind }) => kind !== 'progress')).toEqual(
        one.messages.filter(({ kind }) => kind !== 'progress'),
      )
      expect(records.equals(one.records)).toBe(true)
    }
    const thousands = (told: Told) => told.messages.flatMap((m) => (m.kind === 'progress' ? [m.paths] : []))
    expect(thousands(one)).toEqual([1000, 2000, 3000])
    expect(thousands(two).every((paths) => [1000, 2000, 3000].includes(paths))).toBe(true)
  })

  it('of a directory that is gone, and of hard links between what each of them saw', async () => {
    const job = await jobOf('gone', (base) => {
      fs.mkdirSync(join(base, 'd'))
      for (let file = 0; file < 500; file++) write(join(base, `d/f${file}`), `${file}`)
      for (let file = 0; file < 500; file++) write(join(base, `f${file}`), `${file}`)
      return (view) => {
        fs.rmSync(join(view, 'd'), { recursive: true })
        for (let file = 0; file < 500; file++)
          fs.linkSync(join(view, `f${file}`), join(view, `x${file % 7}-${file}`))
      }
    })
    const one = await alone(job)
    const two = await together(job)
    expect(two.messages).toEqual(one.messages)
    expect(two.records.equals(one.records)).toBe(true)
    expect(one.messages.at(-1)).toMatchObject({ kind: 'done', totals: { deletions: 501, additions: 500 } })
  })
})

describe('a failure of either thread', () => {
  it('is the failure of the diff, and leaves no descriptor and no thread', async () => {
    const job = await flatJob('full')
    const before = openFiles()
    const walkers: SecondWalker[] = []
    for (let run = 0; run < 5; run++) {
      const told = await together(job, (second) => {
        walkers.push(second)
        // As if there were a million changes before these.
        for (let kept = 0; kept < 1_000_000 - 1500; kept++) second.counts.keep()
      })
      expect(told.messages.at(-1)).toMatchObject({ kind: 'failed', error: { code: 'too-large' } })
    }
    await expect.poll(openFiles).toEqual(before)
    expect(walkers.map(({ thread }) => thread !== 0 && hasThread(thread))).toEqual(Array(5).fill(false))
    expect(walkers.every(({ thread }) => thread !== 0)).toBe(true)
  })

  it('that cannot start is none', async () => {
    const job = await flatJob('alone')
    const second = new SecondWalker({ worthStarting: 0 })
    second.start = () => undefined
    expect((await tell(job, second)).messages).toEqual((await alone(job)).messages)
  })
})
