import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { end, eventually, type PrivateBus, privateBus, WHO } from './private-bus.ts'

const check = needs(root, program('dbus-daemon'))
const { developer, reviewer } = WHO
let here: PrivateBus
beforeEach(async () => {
  if (root === undefined) here = await privateBus()
})
afterEach(async () => here?.close())

/** So many programs are started one after the other. */
const programs = (count: number): string => `i=0; while [ $i -lt ${count} ]; do /bin/true; i=$((i+1)); done`

interface Shown {
  id: string
  state: string
  used?: Record<string, number>
}
const shown = async (): Promise<Shown> => {
  const [id = ''] = readdirSync(join(here.state, 'branches'))
  const { out } = await here.puzzlectl(reviewer, 'show', id, '--json')
  return JSON.parse(out) as Shown
}
const reaches = (state: string): Promise<Shown> =>
  eventually(async () => {
    const branch = await shown()
    if (branch.state !== state) throw new Error(`It is ${branch.state}`)
    return branch
  })

describe('a budget that is used up', () => {
  check('stays so when the daemon is killed: nothing starts before somebody gives it more', async () => {
    const run = here.begin(developer, 'run', '--budget', 'exec=20', '--', '/bin/sh', '-c', programs(100))
    const { id } = await reaches('frozen')
    await end(here.daemon, 'SIGKILL')
    await run.ended
    await here.start()
    const stopped = await reaches('stopped')
    // The one that is held is counted too: it was asked for.
    expect(stopped.used?.exec).toBeGreaterThanOrEqual(20)

    const exec = (...command: string[]) => here.puzzlectl(developer, 'exec', id, '--', ...command)
    const refused = await exec('/bin/true')
    expect(refused.err).toContain('exec budget')
    expect(refused.status).not.toBe(0)
    expect((await shown()).state).toBe('stopped')
    // Whoever used it up is not who gives more.
    expect((await here.puzzlectl(developer, 'budget', id, 'exec=5')).status).toBe(77)

    expect((await here.puzzlectl(reviewer, 'budget', id, 'exec=5')).err).toBe('')
    expect((await exec('/bin/true')).status).toBe(0)
    // What was given is all there is: not the twenty of the profile once more.
    const again = here.begin(developer, 'exec', id, '--', '/bin/sh', '-c', programs(20))
    expect((await reaches('frozen')).used?.exec).toBeGreaterThanOrEqual(25)
    expect((await here.puzzlectl(reviewer, 'budget', id, 'exec=100')).err).toBe('')
    expect((await again.ended).status).toBe(0)
  })

  check('is what is left of it after an agent that ended by itself', async () => {
    const run = await here.puzzlectl(
      developer,
      ...[
        'run',
        '--then',
        'hold',
        '--budget',
        'exec=20',
        '--',
        '/bin/sh',
        '-c',
        `echo x > x; ${programs(10)}`,
      ],
    )
    expect(run.err).not.toContain('budget')
    const { id, used } = await shown()
    expect(used?.exec).toBe(11)
    await end(here.daemon, 'SIGTERM')
    await here.start()
    const more = here.begin(developer, 'exec', id, '--', '/bin/sh', '-c', programs(15))
    expect((await reaches('frozen')).used?.exec).toBeGreaterThanOrEqual(20)
    expect((await here.puzzlectl(reviewer, 'budget', id, 'exec=50')).err).toBe('')
    expect((await more.ended).status).toBe(0)
  })
})
