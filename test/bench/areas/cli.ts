import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MANAGER_INTERFACE, MANAGER_PATH } from '../../../daemon/contract/bus.ts'
import { packageRoot } from '../../../daemon/lib/assets.ts'
import { type PrivateBus, privateBus } from '../../e2e/private-bus.ts'
import type { BenchArea, BenchCase, Notes } from '../harness.ts'
import { findPeer } from '../peers.ts'
import { plainEnvironment, toSuccess, working } from '../processes.ts'

const NODE = 'node -e 0'
/** The daemon takes 500 calls a second from one caller: each sample leaves it time to forget the last one. */
const CALLS = 64
const PAUSE_MILLIS = 250
const AT_ONCE = 32

const opened: { bus?: PrivateBus; folder?: string } = {}
const node = (): Promise<void> => toSuccess([process.execPath, '-e', '0'])
const puzzlectl = join(packageRoot(), 'dist', 'puzzlectl.js')

/** The same `true` in every sandbox, started by the same call: what a person waits for at the prompt. */
async function runCase(bus: PrivateBus, folder: string, notes: Notes): Promise<BenchCase> {
  const cwd = bus.project
  const ours = [process.execPath, puzzlectl]
  const embedded = [...ours, '--state-dir', join(folder, 'state'), 'run', '--', 'true']
  const all: Record<string, () => Promise<void>> = {
    [NODE]: node,
    'puzzlectl run -- true, no daemon': () => toSuccess(embedded, { cwd }),
    'puzzlectl run -- true, compiled anew': () =>
      toSuccess(embedded, { cwd, env: plainEnvironment({ PUZZLED_COMPILE_CACHE: '0' }) }),
    'puzzlectl run -- true, daemon': () =>
      toSuccess([...ours, 'run', '--', 'true'], {
        cwd,
        env: plainEnvironment({ DBUS_SYSTEM_BUS_ADDRESS: bus.address }),
      }),
  }
  const peer = (program: string, name: string, args: readonly string[]): void => {
    const path = findPeer(program, notes)
    if (path !== undefined) all[name] = () => toSuccess([path, ...args], { cwd })
  }
  peer('bwrap', 'bwrap --unshare-all', [
    ...['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc'],
    ...['--dev', '/dev', '--tmpfs', '/tmp', 'true'],
  ])
  peer('try', 'try', ['-n', 'true'])
  peer('srt', 'sandbox-runtime', ['true'])
  return {
    name: 'wall time of `true`',
    baseline: NODE,
    goal: '≤ 2.0 without a daemon',
    rounds: 25,
    warmUp: 3,
    candidates: await working(all, notes.missing),
  }
}

async function busCases(bus: PrivateBus): Promise<BenchCase[]> {
  const connection = await bus.connect()
  const [daemon] = await connection.callBus('GetNameOwner', 's', ['org.puzzled1'])
  const toDaemon = (member: string, signature: string, body: unknown[]) => (): Promise<unknown> =>
    connection.call({
      destination: String(daemon),
      path: MANAGER_PATH,
      interface: signature === 'ss' ? 'org.freedesktop.DBus.Properties' : MANAGER_INTERFACE,
      member,
      signature,
      body,
    })
  const many = (call: () => Promise<unknown>, atOnce: number) => async (): Promise<void> => {
    let left = CALLS
    const one = async (): Promise<void> => {
      while (left-- > 0) await call()
    }
    await Promise.all(Array.from({ length: atOnce }, one))
  }
  const property = toDaemon('Get', 'ss', [MANAGER_INTERFACE, 'Version'])
  const id = (): Promise<unknown> => connection.callBus('GetId', '', [])
  return [1, AT_ONCE].map((atOnce) => ({
    name: `${CALLS} calls on the bus, ${atOnce} at a time`,
    baseline: 'GetId of dbus-daemon itself',
    goal: 'no target',
    rounds: 10,
    warmUp: 2,
    before: { 'Version of puzzled': () => sleep(PAUSE_MILLIS) },
    candidates: {
      'GetId of dbus-daemon itself': many(id, atOnce),
      'Version of puzzled': many(property, atOnce),
    },
  }))
}

export const area: BenchArea = {
  name: 'cli',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: async (notes) => {
    const folder = mkdtempSync(join(tmpdir(), 'bench-cli-'))
    opened.folder = folder
    const bus = await privateBus()
    opened.bus = bus
    return [
      {
        name: 'puzzlectl --version',
        baseline: NODE,
        goal: '≤ 1.5',
        rounds: 30,
        candidates: {
          [NODE]: node,
          'puzzlectl --version': () => toSuccess([process.execPath, puzzlectl, '--version']),
        },
      },
      await runCase(bus, folder, notes),
      ...(await busCases(bus)),
    ]
  },
  close: async () => {
    await opened.bus?.close()
    if (opened.folder !== undefined) rmSync(opened.folder, { recursive: true, force: true })
  },
}
