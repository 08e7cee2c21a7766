import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { parse, stringify } from 'yaml'
import { packageRoot } from '../../daemon/lib/assets.ts'
import { eventually, type PrivateBus, privateBus, WHO } from '../e2e/private-bus.ts'
import { type Missing, needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport, startOutside } from './attack.ts'

/** SO_PASSRIGHTS. */
const PROBE = 'import socket; socket.socketpair()[0].setsockopt(1, 83, 0)'
const refusable: Missing =
  spawnSync('python3', ['-c', PROBE]).status === 0 ? undefined : 'needs SO_PASSRIGHTS (Linux 6.16)'
const runnable = [root, program('gcc'), program('dbus-daemon'), refusable]
const check = needs(...runnable)
const possible = runnable.every((missing) => missing === undefined)
const KINDS = ['root', 'proc', 'fifo', 'lingering', 'thousands']
const all = (answer: string) => Object.fromEntries(KINDS.map((kind) => [kind, answer]))
/** 4 alone and 20 messages of 200. */
const HANDED = 4004

let here: PrivateBus
/** Somebody's branch, with an agent that goes on. */
let other = ''
beforeAll(async () => {
  if (!possible) return
  here = await privateBus()
  const script = 'echo x; exec sleep 100000'
  const options = ['run', '--detach', '--tty', '--profile', 'offline', '--then', 'discard']
  other = (await here.puzzlectl(WHO.root, ...options, '--', 'sh', '-c', script)).out.trim()
  for (const place of places()) chmodSync(place, 0o666)
  for (const name of ['hand', 'descriptors']) copyFileSync(attack(name), join(here.project, name))
})
afterAll(async () => {
  if (!possible) return
  await here.puzzlectl(WHO.root, 'discard', other)
  await here.close()
})

const socketOf = (name: string): string => join(dirname(here.config), 'run', name)
const places = (): string[] => [socketOf('metrics.sock'), socketOf(`sessions/${other}`)]
/** What its descriptors lead to; one that was closed meanwhile to nothing. */
const descriptorsOf = (pid: number | undefined): string[] =>
  readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ''
    }
  })
const handed = (links: readonly string[]): string[] => links.filter((link) => /^\/$|^\/proc$|fifo/.test(link))

/** The sockets of the control plane are handed in, and there is a network of its own to make sockets in. */
function profileWithSockets(): string {
  const standard = parse(readFileSync(join(packageRoot(), 'policies/profiles/standard.yaml'), 'utf8'))
  mkdirSync(socketOf('sessions'), { recursive: true, mode: 0o711 })
  const mounts = [socketOf('metrics.sock'), socketOf('sessions')].map((path) => ({
    ...{ path, mode: 'ro', why: 'An administrator who did not think.' },
  }))
  const file = join(here.project, 'sockets.yaml')
  const profile = { ...standard, name: 'sockets', mounts: [...standard.mounts, ...mounts] }
  writeFileSync(file, stringify(profile), { mode: 0o644 })
  return file
}

describe('S46 descriptors that are handed over', () => {
  check('control: outside, whoever listens has all of them', async () => {
    const place = join(attackFolder(), 'taker')
    const taker = startOutside([attack('hand'), place, String(HANDED)])
    await eventually(async () => expect(taker.output()).toContain('ready'))
    expect(parseReport(outside([attack('hand'), place]))).toEqual(all('OK'))
    await taker.ended
    expect(parseReport(taker.output())).toMatchObject({ taken: String(HANDED) })
  })

  check('reach no socket of the daemon, which has as many as before and goes on', async () => {
    const profile = profileWithSockets()
    const begin = async (place: string): Promise<string> => {
      const options = ['run', '--detach', '--profile', profile, '--then', 'discard']
      return (await here.puzzlectl(WHO.root, ...options, '--', './hand', place, 'stay')).out.trim()
    }
    const reportOf = async (id: string): Promise<Record<string, string>> => {
      const { out } = await here.puzzlectl(WHO.root, 'logs', id)
      if (!out.includes('thousands')) throw new Error(`Not yet: ${out}`)
      return parseReport(out)
    }
    const before = descriptorsOf(here.daemon.pid)
    expect(handed(before)).toEqual([])
    const ids: string[] = []
    for (const place of places()) {
      ids.push(await begin(place))
      expect(await eventually(() => reportOf(ids.at(-1) ?? ''))).toEqual(all('EPERM'))
    }
    // Whoever handed them over is still there, with the other ends.
    const shown = await here.puzzlectl(WHO.root, 'show', other, '--json')
    expect(JSON.parse(shown.out)).toMatchObject({ state: 'running' })
    const ran = await here.puzzlectl(
      WHO.root,
      ...['run', '--profile', 'offline', '--then', 'discard', '--', 'echo', 'on'],
    )
    expect(ran.out).toContain('on')
    const after = descriptorsOf(here.daemon.pid)
    // Workers that came with the first branch stay: they have a few, and 8008 were handed over.
    expect([handed(after), after.length < before.length + 100]).toEqual([[], true])
    for (const id of ids) await here.puzzlectl(WHO.root, 'discard', id)
  })

  check('of the daemon are in no agent, and in no command that joins one', async () => {
    const own = { 'fd-0': 'stream', 'fd-1': 'stream', 'fd-2': 'stream', cwd: here.project }
    const agent = ['--profile', 'offline', '--then', 'discard', '--', './descriptors']
    for (const options of [[], ['--budget', 'exec=50']]) {
      const { out, err } = await here.puzzlectl(WHO.root, 'run', ...options, ...agent)
      expect(parseReport(out), err).toEqual({ ...own, 'raw-cwd': 'reachable' })
    }
    const joined = await here.puzzlectl(WHO.root, 'exec', other, '--', './descriptors')
    expect(parseReport(joined.out), joined.err).toEqual({ ...own, 'raw-cwd': 'reachable' })
  })
})
