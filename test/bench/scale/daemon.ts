import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { BusEngine } from '../../../ctl/bus-engine.ts'
import type { Engine } from '../../../daemon/contract/engine.ts'
import { type PrivateBus, privateBus, WHO } from '../../e2e/private-bus.ts'
import type { Notes } from '../harness.ts'
import { quantile } from '../statistics.ts'
import { proportionalBytes } from './agents.ts'

const LISTS = 20
const EVENTS = 20
/** Of the whole command, as a person sees it. */
const SEEN = 10
const MEGA = 1e6

/** A daemon on a bus of its own with more and more branches whose agents run: its memory, its list, its events. */
export async function branchesOfDaemon(counts: readonly number[], notes: Notes): Promise<void> {
  const bus = await privateBus()
  const connection = await bus.connect()
  try {
    const engine = await BusEngine.open(connection)
    if (engine === null) throw new Error('The daemon does not own its name')
    const ids: string[] = []
    for (const count of counts) {
      while (ids.length < count) ids.push(await idleBranch(engine, bus.project))
      await look(engine, bus, ids, notes)
    }
    for (const id of ids) await engine.discard(id)
  } finally {
    await connection.close()
    await bus.close()
  }
}

async function idleBranch(engine: Engine, base: string): Promise<string> {
  const session = await engine.run({
    ...{ bases: [base], profile: 'standard', name: null, afterwards: 'hold', command: ['sleep', '100000'] },
    ...{ cwd: base, requester: { uid: 0, gid: 0, groups: [0], name: 'root' }, budgets: {} },
    ...{ environment: { PATH: process.env.PATH ?? '' }, setEnvironment: {}, stdio: { kind: 'pipes' } },
  })
  session.exited.catch(() => undefined)
  return session.id
}

async function look(engine: Engine, bus: PrivateBus, ids: readonly string[], notes: Notes): Promise<void> {
  const lists: number[] = []
  for (let round = 0; round < LISTS; round++) {
    const began = performance.now()
    const { length } = await engine.list()
    lists.push(performance.now() - began)
    if (length !== ids.length) throw new Error(`${length} of ${ids.length} branches are listed`)
  }
  const seen: number[] = []
  for (let round = 0; round < SEEN; round++) {
    const began = performance.now()
    const { status } = await bus.puzzlectl(WHO.root, 'ls')
    if (status !== 0) throw new Error(`puzzlectl ls ended with ${status}`)
    seen.push(performance.now() - began)
  }
  const events: number[] = []
  for (let round = 0; round < EVENTS; round++) events.push(await eventLatency(engine, ids.at(-1) ?? ''))
  const about = `daemon with ${ids.length} running branches`
  notes.fact(`${about}: memory`, proportionalBytes(bus.daemon.pid ?? 0) / MEGA, 'MB')
  notes.fact(`${about}: processor time of each idle second`, await idleMillis(bus.daemon.pid ?? 0), 'ms')
  notes.fact(`${about}: list p50`, quantile(lists, 0.5), 'ms')
  notes.fact(`${about}: list p99`, quantile(lists, 0.99), 'ms')
  notes.fact(`${about}: puzzlectl ls, p50 with the start of its process`, quantile(seen, 0.5), 'ms')
  notes.fact(`${about}: freeze until its event, p50`, quantile(events, 0.5), 'ms')
}

/** Two rounds of the looks that come every fifteen seconds; of five seconds, what happens once can be most. */
const IDLE_SECONDS = 30
const REST_SECONDS = 12
/** The unit of the times in /proc/PID/stat, on every architecture that Node runs on. */
const MILLIS_PER_TICK = 10

/** What all threads together use of a second in which nobody asks for anything. */
async function idleMillis(pid: number): Promise<number> {
  const used = (): number => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * MILLIS_PER_TICK
  }
  // What the last request left behind is not idleness, and an agent counts as resting ten seconds after its last work.
  await sleep(REST_SECONDS * 1_000)
  const before = used()
  await sleep(IDLE_SECONDS * 1_000)
  return (used() - before) / IDLE_SECONDS
}

/** From the request until a follower hears of it. */
async function eventLatency(engine: Engine, id: string): Promise<number> {
  const stop = new AbortController()
  const heard = (async () => {
    for await (const event of engine.events({ branch: id }, stop.signal))
      if (event.kind === 'state' && event.to === 'frozen') return performance.now()
    return Number.NaN
  })()
  // The follower's match must be on the bus before anything happens.
  await engine.show(id)
  const began = performance.now()
  await engine.freeze(id)
  const latency = (await heard) - began
  stop.abort()
  await engine.thaw(id)
  return latency
}
