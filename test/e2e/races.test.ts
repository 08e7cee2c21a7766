import { existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { BusEngine } from '../../ctl/bus-engine.ts'
import { MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import type { Engine, RunRequest } from '../../daemon/contract/engine.ts'
import type { BusConnection } from '../../daemon/lib/bus-connection.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { needs, program, root } from '../tier/needs.ts'
import { patience } from '../tier/patience.ts'
import { eventually, type PrivateBus, privateBus } from './private-bus.ts'

const check = needs(root, program('dbus-daemon'))
let here: PrivateBus
let connection: BusConnection
let engine: Engine
const connect = async (): Promise<Engine> => {
  const opened = await BusEngine.open(await here.connect())
  if (opened === null) throw new Error('No daemon answers')
  return opened
}
beforeEach(async () => {
  if (root !== undefined) return
  here = await privateBus()
  connection = await here.connect()
  engine = await connect()
})
afterEach(async () => {
  await connection?.close()
  await engine?.close()
  await here?.close()
})

const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const request = (script: string, change: Partial<RunRequest> = {}): RunRequest => ({
  ...{ bases: [here.project], cwd: here.project, profile: 'standard', name: null, budgets: {} },
  ...{ afterwards: 'hold', command: ['sh', '-c', script], setEnvironment: {}, stdio: { kind: 'pipes' } },
  requester: ROOT,
  environment: { PATH: process.env.PATH ?? '' },
  ...change,
})
const hold = async (script: string): Promise<{ id: string; digest: string | null }> => {
  const { id } = await engine.run(request(script))
  const { digest } = await engine.finish(id)
  return { id, digest }
}
const decision = (digest: string | null) => ({ by: ROOT, digest, selection: null, why: 'fine' })
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof PuzzledError ? error.code : String(error)),
  )

/** What may be said to whoever comes a moment too late; a defect is never among it. */
const TOO_LATE = new Set([
  'done',
  'wrong-state',
  'branch-unknown',
  'changed-since-review',
  'approval-invalid',
])

describe('verbs at the same moment on one branch', () => {
  check(
    'end in one of their outcomes, whole, and say so to everybody',
    { timeout: patience * 600_000 },
    async () => {
      let [landed, gone] = [0, 0]
      for (let round = 0; round < 6; round++) {
        const file = `${round}.txt`
        const { id, digest } = await hold(`echo agent > ${file}; mkdir d${round}; echo more > d${round}/more`)
        const reload = { destination: 'org.puzzled1', path: MANAGER_PATH, interface: MANAGER.name }
        const verbs: (() => Promise<unknown>)[] = [
          () => engine.approve(id, decision(digest)),
          () => engine.approve(id, decision(digest)),
          () => engine.commit(id),
          () => engine.discard(id),
          () => engine.review(id),
          () => engine.rebase(id, { ours: [], theirs: [], drop: [] }),
          () => connection.call({ ...reload, member: 'Reload' }),
        ]
        // Another one is first every time, and every second time nobody throws it away.
        const order = [...verbs.slice(round % verbs.length), ...verbs.slice(0, round % verbs.length)]
        const asked = round % 2 === 0 ? order : order.filter((verb) => verb !== verbs[3])
        const codes = await Promise.all(asked.map((verb) => codeOf(verb())))
        expect(codes.filter((code) => !TOO_LATE.has(code))).toEqual([])
        const all = await engine.list()
        const state = all.find((row) => row.id === id)?.state ?? 'gone'
        const real = existsSync(join(here.project, file))
        expect([round, state, real, existsSync(join(here.project, `d${round}/more`))]).toEqual([
          round,
          expect.stringMatching(real ? /^committed$/ : /^(held|stopped|gone)$/),
          real,
          real,
        ])
        if (real) landed++
        else gone++
        for (const row of all)
          if (row.state === 'held' || row.state === 'stopped') await engine.discard(row.id)
      }
      // The control: both came to pass.
      expect([landed > 0, gone > 0]).toEqual([true, true])
      expect(here.said()).toBe('')
    },
  )

  check('a digest that changed between the look and the approval is refused', async () => {
    const { id, digest } = await hold('echo agent > a.txt')
    const session = await engine.exec(id, {
      ...{ command: ['sh', '-c', 'echo later > a.txt'], cwd: null, environment: {}, setEnvironment: {} },
      ...{ stdio: { kind: 'pipes' }, timeout: null },
    })
    await session.exited
    const first = codeOf(engine.review(id))
    expect(await codeOf(engine.approve(id, decision(digest)))).toBe('changed-since-review')
    expect(await first).toBe('done')
    expect(readdirSync(here.project)).toEqual([])
  })
})

describe('clients that come and go', () => {
  const descriptors = (): string[] =>
    readdirSync(`/proc/${here.daemon.pid}/fd`).map((fd) => {
      try {
        return `${fd} ${readlinkSync(`/proc/${here.daemon.pid}/fd/${fd}`)}`
      } catch {
        return `${fd} closed meanwhile`
      }
    })

  check('leave nothing in the daemon', { timeout: patience * 300_000 }, async () => {
    writeFileSync(join(here.project, 'old'), 'old')
    const { id } = await engine.run(request('exec sleep 600', { afterwards: 'discard' }))
    const visit = async (): Promise<void> => {
      const client = await connect()
      await client.list()
      const reader = await client.attach(id)
      const stop = new AbortController()
      const events = client.events({ branch: null }, stop.signal)[Symbol.asyncIterator]()
      const next = events.next()
      const command = { command: ['true'], cwd: null, environment: {}, setEnvironment: {}, timeout: null }
      await (await client.exec(id, { ...command, stdio: { kind: 'pipes' } })).exited
      // Some say goodbye, others are just gone.
      stop.abort()
      await next.catch(() => undefined)
      reader.detach()
      await client.close()
    }
    const crowd = (): Promise<unknown> => Promise.all([visit(), visit(), visit(), visit()])
    for (let round = 0; round < 3; round++) await crowd()
    // What the daemon opens once and keeps (for a thread that begins meanwhile) is not of the visits: they leave something
    // every time or never.
    for (let left = 3; ; left--) {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      const before = descriptors()
      for (let round = 0; round < 4; round++) await crowd()
      const grown = (): string[] => {
        const now = descriptors()
        return now.length > before.length ? now.filter((one) => !before.includes(one)) : []
      }
      const more = await eventually(async () => {
        if (grown().length > 0) throw new Error(`Still open: ${grown().join(', ')}`)
      }).catch((error: unknown) => error)
      if (more === undefined) break
      if (left === 0) throw more
    }
    await engine.discard(id)
    expect(here.said()).toBe('')
  })
})
