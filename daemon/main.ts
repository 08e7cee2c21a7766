import { mkdir } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type Groups, INSIDE } from './api/authorize.ts'
import { isInsideBranch } from './api/credentials.ts'
import { RefusalLog } from './api/refusals.ts'
import { BusService } from './api/serve.ts'
import { checkConfig, refuseFixedChanges } from './check-config.ts'
import { exitStatusOf } from './contract/errors.ts'
import { type OpenedEngine, openEngine } from './embedded.ts'
import { type AuditReader, auditOf } from './inspect-audit.ts'
import { reserveLowDescriptors } from './kernel/low-descriptors.ts'
import { limitArenas } from './kernel/malloc.ts'
import { notifyManager } from './kernel/notify.ts'
import { peerOf } from './kernel/peer.ts'
import { refuseDescriptors } from './kernel/refuse-descriptors.ts'
import { BusConnection, SYSTEM_BUS } from './lib/bus-connection.ts'
import { CONFIG_PATH, type Config, METRICS_SOCKET } from './lib/config.ts'
import { PuzzledError } from './lib/errors.ts'
import { KeyLock } from './lib/key-lock.ts'
import { holdYoungHeap } from './lib/lean-heap.ts'
import { readConfig } from './lib/read-config.ts'
import { sealPrototypes } from './lib/seal.ts'
import { SteadyFile } from './lib/steady-file.ts'
import { serveMetrics } from './process-metrics.ts'
import { takeStreams } from './sandbox/taken-streams.ts'

const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const VERSION = process.env.PUZZLED_BUILD_VERSION ?? 'unbuilt'

const USAGE = `Usage: puzzled [--config FILE] [--check-config] [--version]

The daemon of puzzled. See puzzled(8).
`

/** Of malloc(3), which a dozen threads use that mostly wait. */
const ARENAS = 2

/** Configuration, construction, recovery, service, drain: top to bottom. */
async function main(argv: readonly string[]): Promise<number> {
  if (argv.includes('--version')) return say(`puzzled ${VERSION}\n`)
  if (argv.includes('--help')) return say(USAGE)
  const at = argv.indexOf('--config')
  const path = at < 0 ? CONFIG_PATH : (argv[at + 1] ?? '')
  const unknown = argv.filter(
    (word, index) => word !== '--check-config' && word !== '--config' && index !== at + 1,
  )
  if (at < 0 ? argv.some((word) => word !== '--check-config') : unknown.length > 0)
    throw new PuzzledError('usage', `Unknown argument: ${argv.join(' ')}`, { hint: USAGE.trim() })
  if (argv.includes('--check-config')) {
    await checkConfig(path)
    return say(`${path}: ok, and so are profiles and policies\n`)
  }
  holdYoungHeap()
  limitArenas(ARENAS)
  const config = await readConfig(path)
  await serve(config, path)
  return 0
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}

/** Half of those that `select` can take. */
const LOW_DESCRIPTORS = 512

async function serve(config: Config, path: string): Promise<void> {
  reserveLowDescriptors(LOW_DESCRIPTORS)
  const opened = await openEngine(config, ROOT, true)
  // Everything is loaded now, and nothing that was said to the daemon has been read.
  sealPrototypes()
  const refusals = new RefusalLog((facts) => void opened.audit('denied', '', { ...facts }).catch(complain))
  const denied: Denied = (uid, what, why) => {
    opened.metrics.count('puzzled_refused_calls')
    refusals.add({ uid, what, why })
  }
  const closeMetrics = await offerMetrics(opened, config, denied)
  try {
    await serveOnBus(opened, config, path, denied)
  } finally {
    refusals.flush()
    await closeMetrics()
    await opened.engine.endAgents()
    await opened.release()
  }
}

/** Readers are those who may see every branch. A daemon that cannot be watched works, and says so. */
async function offerMetrics(
  { metrics }: OpenedEngine,
  config: Config,
  denied: Denied,
): Promise<() => Promise<void>> {
  const { socket, loopback_port: port } = config.metrics
  if (!socket) return async () => undefined
  try {
    await mkdir(config.runtime_dir, { recursive: true, mode: 0o711 })
    const { reviewers } = await groupsOf(config)
    const place = join(config.runtime_dir, METRICS_SOCKET)
    const offered = { version: VERSION, socket: place, gid: reviewers, port }
    const served = await serveMetrics(metrics, {
      ...offered,
      admits: outsiders(denied, 'the metrics'),
      prepare: refuseDescriptors,
    })
    return () => served.close().catch(complain)
  } catch (error) {
    complain(new Error(`The metrics cannot be offered: ${error instanceof Error ? error.message : error}`))
    return async () => undefined
  }
}

async function serveOnBus(
  { engine, reload }: OpenedEngine,
  config: Config,
  path: string,
  denied: Denied,
): Promise<void> {
  const live = { ...config }
  const reloadAll = serially(async () => {
    const next = await readConfig(path)
    refuseFixedChanges(live, next)
    await reload(next)
    Object.assign(live, next)
  })
  const connection = await BusConnection.connect(
    config.bus === 'system' ? undefined : (process.env.DBUS_SESSION_BUS_ADDRESS ?? SYSTEM_BUS),
  )
  const service = new BusService(connection, {
    version: VERSION,
    engineFor: (requester, tell) => engine.as(requester, tell),
    groups: () => groupsOf(live),
    nameOf: userName,
    takeStreams,
    reload: reloadAll,
    blame: unlessUnknown(auditOf(config.state_dir).blame),
    finished: engine.finished,
    sessionDirectory: `${config.runtime_dir}/sessions`,
    admits: outsiders(denied, 'a session'),
    denied,
    report: complain,
  })
  const ended = new Promise<Error | null>((resolve) => {
    connection.onClose((cause) =>
      resolve(new PuzzledError('bus-gone', 'The message bus went away', { cause })),
    )
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve(null))
  })
  process.on('SIGHUP', () => void reloadBySignal(reloadAll))
  try {
    await service.start()
    notifyManager(`READY=1\nSTATUS=Serving`)
    const stopWatchdog = startWatchdog()
    const cause = await ended
    stopWatchdog()
    notifyManager('STOPPING=1')
    if (cause !== null) throw cause
  } finally {
    await service.stop()
  }
}

/** Whoever may hear of it is asked later: until then nothing on record is no failure. */
const unlessUnknown =
  (blame: AuditReader['blame']): AuditReader['blame'] =>
  (path, most) =>
    blame(path, most).catch((error: unknown) => {
      if (error instanceof PuzzledError && error.code === 'branch-unknown') return []
      throw error
    })

type Denied = (uid: number | null, what: string, why: string) => void

/** Lets in whoever is outside of every branch. Only a unix socket says who connected; agents reach no other. */
const outsiders =
  (denied: Denied, what: string) =>
  async (socket: Socket): Promise<boolean> => {
    const peer = peerOf(socket)
    if (peer === null || !(await isInsideBranch(peer.pid))) return true
    denied(peer.uid, `the socket of ${what}`, INSIDE)
    return false
  }

/** The manager waits for READY whatever came of it; what is wrong stands in its status and in the journal. */
async function reloadBySignal(reloadAll: () => Promise<void>): Promise<void> {
  notifyManager('RELOADING=1')
  try {
    await reloadAll()
    notifyManager('READY=1\nSTATUS=Serving')
  } catch (error) {
    complain(error)
    notifyManager('READY=1\nSTATUS=The reload was refused; what was in force stays in force')
  }
}

/** One after the other: two reloads at once could put half of each in force. */
function serially(work: () => Promise<void>): () => Promise<void> {
  const lock = new KeyLock<string>()
  return () => lock.run('', work)
}

/** Half the interval that the manager allows; a blocked event loop therefore misses it. */
function startWatchdog(): () => void {
  const allowed = Number(process.env.WATCHDOG_USEC ?? 0)
  if (allowed <= 0) return () => undefined
  const timer = setInterval(() => notifyManager('WATCHDOG=1'), allowed / 2000)
  return () => clearInterval(timer)
}

/** A call asks for these several times, each time on a thread of the pool. */
const groupIds = new SteadyFile('/etc/group', (text) => {
  const lines = text.split('\n').map((line) => line.split(':'))
  // The first one counts, as everywhere.
  return new Map(lines.reverse().map(([name = '', , gid]) => [name, Number(gid)]))
})

async function groupsOf(config: Config): Promise<Groups> {
  const ids = await groupIds.read()
  return { users: ids.get(config.groups.users) ?? null, reviewers: ids.get(config.groups.reviewers) ?? null }
}

const userNames = new SteadyFile('/etc/passwd', (text) => {
  const lines = text.split('\n').map((line) => line.split(':'))
  return new Map(lines.reverse().map(([name = '', , uid]) => [Number(uid), name]))
})

const userName = async (uid: number): Promise<string> => (await userNames.read()).get(uid) ?? String(uid)

function complain(error: unknown): void {
  process.stderr.write(`puzzled: ${error instanceof Error ? error.message : error}\n`)
}

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status
  },
  (error: unknown) => {
    complain(error)
    if (error instanceof PuzzledError && error.hint !== undefined)
      process.stderr.write(`  hint: ${error.hint}\n`)
    process.exitCode = exitStatusOf(error instanceof PuzzledError ? error.code : 'internal')
  },
)
