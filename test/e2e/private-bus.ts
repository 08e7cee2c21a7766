import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { BusConnection } from '../../daemon/lib/bus-connection.ts'
import type { Ended } from './cli.ts'

const dist = (name: string): string => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url))

/** Groups that every Debian has stand for `puzzled` and `puzzled-reviewers`; nothing is written to /etc. */
const USERS = 'games'
const REVIEWERS = 'news'

const gidOf = (name: string): number =>
  Number(new RegExp(`^${name}:[^:]*:(\\d+):`, 'm').exec(readFileSync('/etc/group', 'utf8'))?.[1])

/** Who calls: uid, and the supplementary groups. */
export interface Identity {
  uid: number
  groups: readonly number[]
}

/**
 * Root, two members of the users' group, one of the reviewers' group, and somebody who is in neither. The bus lets
 * nobody in whom passwd does not know, so these are users that every Debian has.
 */
export const WHO = {
  root: { uid: 0, groups: [] },
  developer: { uid: 33, groups: [gidOf(USERS)] },
  colleague: { uid: 1, groups: [gidOf(USERS)] },
  reviewer: { uid: 8, groups: [gidOf(REVIEWERS)] },
  outsider: { uid: 65534, groups: [] },
} as const satisfies Record<string, Identity>

export interface PrivateBus {
  readonly address: string
  readonly config: string
  readonly project: string
  readonly state: string
  readonly bus: ChildProcess
  /** More for the environment of every program that is begun here. */
  readonly env: Record<string, string>
  /** The same for the daemon when it is started the next time. */
  readonly daemonEnv: Record<string, string>
  daemon: ChildProcess
  /** What the daemon wrote to stderr. */
  said(): string
  /** Starts the daemon (again), with failpoints where asked, and waits until it owns its name. */
  start(failpoints?: string): Promise<void>
  /** One program on this bus as that user; its standard input is empty. */
  exec(who: Identity, command: readonly string[]): Promise<Ended>
  /** The same, not waited for. */
  background(who: Identity, command: readonly string[]): Begun
  puzzlectl(who: Identity, ...args: string[]): Promise<Ended>
  /** The same, not waited for. */
  begin(who: Identity, ...args: string[]): Begun
  /** A connection of this process, which is root. */
  connect(): Promise<BusConnection>
  close(): Promise<void>
}

export interface Begun {
  readonly child: ChildProcess
  /** Its own end; what it started may hold its output open for longer. */
  readonly exited: Promise<number | null>
  readonly ended: Promise<Ended>
}

/** A bus that lets everybody in; who may do what is the daemon's business. */
export const BUS_CONFIG = (socket: string): string => `<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=${socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
<allow send_destination="*"/><allow receive_sender="*"/></policy>
<limit name="max_replies_per_connection">50000</limit></busconfig>`

/** A bus and a daemon of their own: the machine's system bus and store are not touched. */
export async function privateBus(): Promise<PrivateBus> {
  const root = mkdtempSync(join(tmpdir(), 'puzzled-bus-'))
  chmodSync(root, 0o755)
  const place = (name: string): string => join(root, name)
  mkdirSync(place('project'))
  chownSync(place('project'), WHO.developer.uid, WHO.developer.uid)
  writeFileSync(place('bus.conf'), BUS_CONFIG(place('socket')))
  writeFileSync(
    place('puzzled.yaml'),
    `state_dir: ${place('state')}\nruntime_dir: ${place('run')}\ngroups: { users: ${USERS}, reviewers: ${REVIEWERS} }\n`,
  )
  const bus = spawn('dbus-daemon', ['--nofork', '--nopidfile', `--config-file=${place('bus.conf')}`], {
    stdio: 'ignore',
  })
  const address = `unix:path=${place('socket')}`
  await (await eventually(() => BusConnection.connect(address))).close()
  const run: Running = { address, config: place('puzzled.yaml'), said: '', env: {} }
  const here: PrivateBus = {
    address,
    config: run.config,
    project: place('project'),
    state: place('state'),
    bus,
    env: {},
    daemonEnv: run.env,
    daemon: bus,
    said: () => run.said,
    start: async (failpoints = '') => {
      run.said = ''
      here.daemon = startDaemon(run, failpoints)
      await eventually(() => ownsName(address, here.daemon))
    },
    exec: (who, command) => begin(here, who, command).ended,
    background: (who, command) => begin(here, who, command),
    puzzlectl: (who, ...args) => here.begin(who, ...args).ended,
    begin: (who, ...args) => begin(here, who, [process.execPath, dist('puzzlectl.js'), ...args]),
    connect: () => BusConnection.connect(address),
    close: async () => {
      await end(here.daemon, 'SIGTERM')
      await end(bus, 'SIGTERM')
      rmSync(root, { recursive: true, force: true })
    },
  }
  await here.start()
  return here
}

interface Running {
  address: string
  config: string
  said: string
  readonly env: Record<string, string>
}

function startDaemon(run: Running, failpoints: string): ChildProcess {
  const daemon = spawn(process.execPath, [dist('puzzled.js'), '--config', run.config], {
    env: {
      PATH: process.env.PATH,
      HOME: '/root',
      DBUS_SYSTEM_BUS_ADDRESS: run.address,
      PUZZLED_FAILPOINTS: failpoints,
      ...run.env,
    },
    stdio: ['ignore', 'inherit', 'pipe'],
    cwd: '/',
  })
  daemon.stderr?.setEncoding('utf8').on('data', (text: string) => {
    run.said += text
  })
  return daemon
}

async function ownsName(address: string, daemon: ChildProcess): Promise<void> {
  const connection = await BusConnection.connect(address)
  try {
    const [pid] = await connection.callBus('GetConnectionUnixProcessID', 's', ['org.puzzled1'])
    if (Number(pid) !== daemon.pid) throw new Error('not yet')
  } finally {
    await connection.close()
  }
}

const PATIENCE_MILLIS = 120_000

/** Tries until it works; a daemon that never comes up is a failed test. */
export async function eventually<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (const end = performance.now() + PATIENCE_MILLIS; ; )
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > end) throw error
      await sleep(25)
    }
}

export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'close')
  child.kill(signal)
  await exited
}

function begin(here: PrivateBus, who: Identity, command: readonly string[]): Begun {
  const groups = who.groups.length === 0 ? ['--clear-groups'] : ['--groups', who.groups.join(',')]
  const identity = ['--reuid', String(who.uid), '--regid', String(who.uid), ...groups]
  const [program = '', ...args] = who.uid === 0 ? command : ['setpriv', ...identity, ...command]
  const child = spawn(program, args, {
    cwd: here.project,
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      DBUS_SYSTEM_BUS_ADDRESS: here.address,
      ...here.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = { status: null, out: '', err: '' } as Ended
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    ended.err += text
  })
  const when = (event: 'exit' | 'close'): Promise<number | null> =>
    new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on(event, resolve)
    })
  return {
    child,
    exited: when('exit'),
    ended: when('close').then((status) => ({ ...ended, status })),
  }
}
