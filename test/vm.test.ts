import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const here = fileURLToPath(new URL('.', import.meta.url))

/** Runs lines of a module beside test/vm; what it prints is JSON. */
function ask(text: string, ...args: string[]): unknown {
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', text, ...args], {
    cwd: here,
    encoding: 'utf8',
  })
  if (run.status !== 0) throw new Error(run.stderr)
  return JSON.parse(run.stdout)
}

describe('the machines of a whole run', () => {
  const jobs = ask(
    `import { whole } from './vm/suites.mjs'; console.log(JSON.stringify(whole().map(({ job }) => job)))`,
  ) as string[]

  it.each(['e2e', 'root', 'escape'])('run each file of the tier %s once', (tier) => {
    const starts = jobs.flatMap((job) => job.split(' ')).filter((word) => word.startsWith(`test/${tier}/`))
    for (const name of readdirSync(join(here, tier)).filter((each) => each.endsWith('.test.ts')))
      expect(
        starts.filter((start) => `test/${tier}/${name}`.startsWith(start)),
        name,
      ).toHaveLength(1)
  })

  it('are dealt out in order and completely, into however many parts', () => {
    const parts = ask(`
      import { chosen, whole } from './vm/suites.mjs'
      const all = [1, 2, 5, 40].map((of) =>
        Array.from({ length: of }, (_, part) => chosen(whole(), \`\${part + 1}/\${of}\`)).flat())
      console.log(JSON.stringify(all.map((jobs) => jobs.map(({ job }) => job))))`)
    expect(parts).toEqual([jobs, jobs, jobs, jobs])
  })
})

describe('the folder of a run', () => {
  const MAKE = `
    import { runFolder } from './vm/place.mjs'
    console.log(JSON.stringify(runFolder(process.argv[1])))
    if (process.argv[2] === 'stays') setInterval(() => undefined, 1000)`
  let cache = ''
  const runs: ChildProcess[] = []
  beforeEach(() => {
    cache = mkdtempSync(join(tmpdir(), 'vm-cache-'))
  })
  afterEach(() => {
    for (const run of runs.splice(0)) run.kill('SIGKILL')
    rmSync(cache, { recursive: true })
  })

  async function begin(): Promise<{ run: ChildProcess; folder: string }> {
    const run = spawn(process.execPath, ['--input-type=module', '-e', MAKE, cache, 'stays'], { cwd: here })
    runs.push(run)
    const [line] = (await once(run.stdout, 'data')) as [Buffer]
    const folder = JSON.parse(String(line)) as string
    mkdirSync(join(folder, 'image'))
    // As one that was made long ago: a folder is spared for a minute before it is locked.
    utimesSync(folder, 1, 1)
    return { run, folder }
  }

  async function end(run: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    const ended = once(run, 'exit')
    run.kill(signal)
    await ended
  }

  it.each(['SIGHUP', 'SIGINT', 'SIGTERM'] as const)('goes with a run that ends by %s', async (signal) => {
    const { run, folder } = await begin()
    await end(run, signal)
    expect(existsSync(folder)).toBe(false)
  })

  it('goes with the next run when its own was killed, and not before', async () => {
    const { run, folder } = await begin()
    ask(MAKE, cache)
    expect(readdirSync(folder)).toEqual(['image'])
    await end(run, 'SIGKILL')
    expect(existsSync(folder)).toBe(true)
    const foreign = join(cache, 'run-abcdef')
    mkdirSync(foreign)
    utimesSync(foreign, 1, 1)
    ask(MAKE, cache)
    expect(readdirSync(cache)).toEqual(['run-abcdef'])
  })
})
