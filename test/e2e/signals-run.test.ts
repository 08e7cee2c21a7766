import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'
import { begin, DEVELOPER, type Workplace, workplace } from './cli.ts'

const it = needs(root)

/** Long enough for several signals, on a slow machine as well. */
const STANDS_STILL = 'wait:4000'

describe('a signal to `run`', () => {
  let place: Workplace
  beforeEach(() => {
    place = workplace()
  })
  afterEach(() => place.remove())

  const run = (failpoint: string, script: string) =>
    begin(place.project, place.state, DEVELOPER, ['run', '--', 'sh', '-c', script], failpoint)

  const stateNow = (): string | undefined => {
    const branches = join(place.state, 'branches')
    const [id] = existsSync(branches) ? readdirSync(branches) : []
    const file = join(branches, id ?? '', 'branch.json')
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { state: string }).state : undefined
  }
  /** The states of a start are passed too fast to be seen: the first one that is will do. */
  async function until(state?: string): Promise<void> {
    while (stateNow() === undefined || (state ?? stateNow()) !== stateNow()) await setTimeout(20)
    // It is on disk shortly before the work stands still.
    await setTimeout(1000)
  }
  const kept = async (): Promise<string> => (await place.puzzlectl('ls', '-q')).out

  it('before the agent runs is kept for the agent, and nothing of the branch is left', async () => {
    const started = run(`network.listening=${STANDS_STILL}`, 'sleep 60; echo done > f')
    await until()
    started.signal('SIGTERM')
    const { status, err } = await started.ended
    expect([status, err]).toEqual([143, expect.stringMatching(/no changes; nothing to commit\n$/)])
    expect(await kept()).toBe('')
  })

  it('before the agent runs ends `run` itself when it comes twice', async () => {
    const started = run(`network.listening=${STANDS_STILL}`, 'sleep 60; echo done > f')
    await until()
    started.signal('SIGINT')
    // Two signals of one kind are one as long as nobody has looked.
    started.signal('SIGTERM')
    expect(await started.ended).toEqual({ status: null, out: '', err: '' })
  })

  it('while the branch is judged reaches nobody: that is said, and it is judged to its end', async () => {
    const started = run(`diff.thousand=${STANDS_STILL}`, 'for i in $(seq 1000); do echo x > f$i; done')
    await until('reviewing')
    started.signal('SIGINT')
    const { status, err } = await started.ended
    expect([status, err]).toEqual([
      0,
      expect.stringMatching(
        /^puzzled: the agent has ended, and its branch is judged; the same again ends puzzlectl\npuzzled: branch \w+: \+1000 .*committed as/,
      ),
    ])
    expect(existsSync(join(place.project, 'f1000'))).toBe(true)
  })

  it('while the branch is judged ends `run` when it comes twice, and nothing is committed', async () => {
    const started = run(`diff.thousand=${STANDS_STILL}`, 'for i in $(seq 1000); do echo x > f$i; done')
    await until('reviewing')
    started.signal('SIGINT')
    started.signal('SIGTERM')
    expect((await started.ended).status).toBe(null)
    const id = (await kept()).trim()
    expect(existsSync(join(place.project, 'f1'))).toBe(false)
    expect((await place.puzzlectl('commit', id)).status).toBe(0)
    expect(existsSync(join(place.project, 'f1000'))).toBe(true)
  })
})
