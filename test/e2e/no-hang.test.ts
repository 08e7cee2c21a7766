import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { typedError } from '../../ctl/bus-errors.ts'
import {
  BRANCH,
  type BusInterface,
  branchPath,
  MANAGER,
  MANAGER_PATH,
  signatureOf,
} from '../../daemon/contract/bus.ts'
import { toEntries } from '../../daemon/contract/bus-values.ts'
import { type BusCall, type BusConnection, BusError } from '../../daemon/lib/bus-connection.ts'
import { needs, program, root } from '../tier/needs.ts'
import { patience } from '../tier/patience.ts'
import { type Begun, end, eventually, type PrivateBus, privateBus, WHO } from './private-bus.ts'

const check = needs(root, program('dbus-daemon'))
const { developer, reviewer } = WHO
let here: PrivateBus
beforeEach(async () => {
  if (root !== undefined) return
  here = await privateBus()
  // Its default is made for slow machines, not for tests.
  here.env.PUZZLED_PATIENCE = String(3 * patience)
})
afterEach(async () => {
  here?.daemon.kill('SIGCONT')
  here?.bus.kill('SIGCONT')
  await here?.close()
})

const held = async (script = 'echo a > a.txt'): Promise<string> => {
  const command = ['run', '--json', '--then', 'hold', '--', 'sh', '-c', script]
  return (JSON.parse((await here.puzzlectl(developer, ...command)).out) as { branch: string }).branch
}
/** The branch of an agent that runs until it is ended. */
const busy = async (): Promise<{ run: Begun; id: string }> => {
  const run = here.begin(developer, 'run', '--', 'sh', '-c', 'echo a > b.txt; exec sleep 600')
  const id = await eventually(async () => {
    const rows = JSON.parse((await here.puzzlectl(developer, 'ls', '--json')).out) as {
      id: string
      state: string
    }[]
    const row = rows.find(({ state }) => state === 'running')
    if (row === undefined) throw new Error('Not yet')
    return row.id
  })
  return { run, id }
}
const waiters = (id: string): readonly string[][] => [
  ['wait', id],
  ['events', '--follow'],
  ['exec', id, 'sleep', '600'],
]

describe('a daemon that stands still', () => {
  check('keeps nobody waiting: neither who waited already nor who comes', async () => {
    const { run, id } = await busy()
    const waiting = [run, ...waiters(id).map((words) => here.begin(developer, ...words))]
    // The positive control: these calls last longer than the patience, and the daemon answers meanwhile.
    const early = await Promise.race([
      ...waiting.map(({ exited }) => exited.then(() => 'ended')),
      new Promise((resolve) => setTimeout(resolve, patience * 8000, 'all wait')),
    ])
    expect(early).toBe('all wait')
    here.daemon.kill('SIGSTOP')
    for (const verb of [['ls'], ['show', id], ['diff', id], ['run', '--', 'true'], ['queue', 'ls', id]])
      waiting.push(here.begin(developer, ...verb))
    for (const one of waiting)
      expect([one.child.spawnargs.slice(-3), await one.exited]).toEqual([expect.anything(), 69])
    here.daemon.kill('SIGCONT')
    for (const one of waiting.slice(1)) expect((await one.ended).err).toMatch(/has not answered/)
    // Nothing was lost by it: the agent still runs, and is the daemon's to end.
    expect((await here.puzzlectl(developer, 'signal', id, 'KILL')).status).toBe(0)
    expect((await run.ended).err).toMatch(/has not answered/)
  })
})

describe('a bus that stands still', () => {
  check('keeps nobody waiting', async () => {
    const { run, id } = await busy()
    const waiting = waiters(id).map((words) => here.begin(developer, ...words))
    await new Promise((resolve) => setTimeout(resolve, patience * 3000))
    here.bus.kill('SIGSTOP')
    for (const one of [run, ...waiting]) expect(await one.exited).toBe(69)
    for (const one of waiting) expect((await one.ended).err).toMatch(/has not answered/)
    here.bus.kill('SIGCONT')
    expect((await here.puzzlectl(developer, 'discard', id)).status).toBe(0)
    expect((await run.ended).err).toMatch(/has not answered/)
  })
})

/** A value of the right type for every argument. */
const SAMPLE: Readonly<Record<string, unknown>> = {
  s: 'x',
  as: [],
  ay: Buffer.from('a'),
  u: 0,
  q: 1,
  t: 1,
  d: 1,
  'a{sv}': [],
}
const TEN_MEGABYTES = 10 << 20
const LARGE: Readonly<Record<string, () => unknown>> = {
  s: () => 'x'.repeat(TEN_MEGABYTES),
  as: () => ['x'.repeat(TEN_MEGABYTES)],
  ay: () => Buffer.alloc(TEN_MEGABYTES),
  'a{sv}': () => toEntries({ command: ['x'.repeat(TEN_MEGABYTES)] }),
}
const callOf = (face: BusInterface, member: string, id: string, body: readonly unknown[]): BusCall => {
  const signature = signatureOf(face.methods[member]?.in ?? [])
  const path = face === MANAGER ? MANAGER_PATH : branchPath(id)
  const call = { destination: 'org.puzzled1', path, interface: face.name, member }
  return signature === '' ? call : { ...call, signature, body }
}
const METHODS = [MANAGER, BRANCH].flatMap((face) =>
  Object.entries(face.methods).map(([name, { in: args }]) => ({ face, name, args })),
)
const codeOf = (connection: BusConnection, call: BusCall): Promise<string> =>
  connection.call(call).then(
    () => 'no error',
    (error: unknown) => (error instanceof BusError ? typedError(error).code : String(error)),
  )

describe('every method', () => {
  check('ends at once with its daemon, and says so', async () => {
    const id = await held()
    const connection = await here.connect()
    // So that all of them are under way when it dies.
    here.daemon.kill('SIGSTOP')
    const codes = METHODS.map(async ({ face, name, args }) => {
      const body = args.map(({ type }) => SAMPLE[type])
      return [name, await codeOf(connection, callOf(face, name, id, body))]
    })
    here.daemon.kill('SIGKILL')
    expect(await Promise.all(codes)).toEqual(METHODS.map(({ name }) => [name, 'bus-gone']))
    await end(here.daemon, 'SIGKILL')
    await here.start()
    expect((await here.puzzlectl(reviewer, 'approve', id)).status).toBe(0)
    await connection.close()
  })

  check('refuses ten megabytes in any argument, and the daemon goes on', async () => {
    const id = await held()
    const connection = await here.connect()
    let tried = 0
    for (const { face, name, args } of METHODS)
      for (const [index, { type }] of args.entries()) {
        const large = LARGE[type]
        if (large === undefined) continue
        tried++
        const body = args.map((arg, at) => (at === index ? large() : SAMPLE[arg.type]))
        const code = await codeOf(connection, callOf(face, name, id, body))
        expect([name, index, code]).toEqual([name, index, 'too-large'])
      }
    expect(tried).toBeGreaterThan(20)
    await connection.close()
    expect((await here.puzzlectl(developer, 'show', id)).status).toBe(0)
    expect(here.said()).toBe('')
  })
})

describe('a caller that vanishes during its call', () => {
  check('has asked for it all the same: what it approved lands', async () => {
    const id = await held('for i in $(seq 2000); do echo $i > $i.txt; done')
    const record = join(here.state, 'branches', id, 'branch.json')
    const state = (): string => (JSON.parse(readFileSync(record, 'utf8')) as { state: string }).state
    const connection = await here.connect()
    const answer = connection.call(callOf(BRANCH, 'Approve', id, ['', [], [], 'fine'])).then(
      () => 'answered',
      () => 'gone',
    )
    await eventually(async () => {
      if (state() === 'held') throw new Error('Not yet')
    })
    await connection.close()
    expect(await answer).toBe('gone')
    await eventually(async () => {
      if (state() !== 'committed') throw new Error(`Not yet: ${state()}`)
    })
    expect([readdirSync(here.project).length, here.said()]).toEqual([2000, ''])
  })

  check('by a run: its agent goes on, and its branch is finished by the daemon', async () => {
    const run = here.begin(developer, 'run', '--', 'sh', '-c', `echo a > a.txt; sleep ${3 * patience}`)
    await eventually(async () => {
      const { out } = await here.puzzlectl(developer, 'ls', '--json')
      if (!out.includes('"running"')) throw new Error('Not yet')
    })
    run.child.kill('SIGKILL')
    await eventually(async () => {
      if (!readdirSync(here.project).includes('a.txt')) throw new Error('Not yet')
    })
    expect(here.said()).toBe('')
  })
})
