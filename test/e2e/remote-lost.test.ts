import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { onBus } from './grounds.ts'
import { type Begun, eventually, WHO } from './private-bus.ts'
import { noSshd, type OtherMachine, otherMachine, script } from './sshd.ts'
import { noTypist, typing } from './typist.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const { here, it } = onBus('all', ...noSshd, noTypist)
let machine: OtherMachine | undefined
beforeAll(async () => {
  if (here.address === undefined) return
  // The daemon is known to that side only.
  machine = await otherMachine({ DBUS_SYSTEM_BUS_ADDRESS: here.address })
  script(join(machine.there, 'puzzlectl'), `exec '${process.execPath}' '${puzzlectl}' "$@"`)
})
afterAll(() => machine?.close())

const remote = (...args: string[]): string[] => [
  ...['env', '-u', 'DBUS_SYSTEM_BUS_ADDRESS', `PATH=${machine?.bin}:${process.env.PATH}`, 'TERM=xterm'],
  ...['PUZZLED_PATIENCE=9', process.execPath, puzzlectl, '--host', 'there', ...args],
]
const there = (...args: string[]) => here.exec(WHO.root, remote(...args))
const RUN = (...options: string[]): string[] => ['run', '--base', here.project, ...options, '--', 'sh', '-c']

const stateOf = async (name: string): Promise<string> =>
  (JSON.parse((await here.puzzlectl(WHO.root, 'show', name, '--json')).out) as { state: string }).state
const isRunning = (name: string): Promise<void> =>
  eventually(async () => {
    if ((await stateOf(name)) !== 'running') throw new Error('Not yet')
  })
const LOST = /puzzlectl: ssh did not get to "there", or lost it .*\n {2}hint: /

describe('attached to an agent on another machine, over ssh', () => {
  it('a person types, lets go, and the agent goes on', async () => {
    const agent = 'stty size; echo ready; while read -r line; do echo "got $line"; done'
    expect(await there(...RUN('--detach', '--tty', '--name', 'far'), agent)).toMatchObject({ status: 0 })
    const keys = ['33 111|ready', 'hello\\n', 'got hello', '\\x1d\\x1d\\x1d', 'detached']
    const { out } = await here.exec(WHO.root, typing(keys, ...remote('attach', 'far')))
    expect(out).toContain('the agent goes on')
    expect(out).toContain('status 0')
    expect(await stateOf('far')).toBe('running')
    expect((await there('signal', 'far', 'KILL')).status).toBe(0)
  })
})

describe('a connection', () => {
  const waiting = async (name: string): Promise<Begun> => {
    const run = here.background(WHO.root, remote(...RUN('--name', name), 'echo ready; exec sleep 600'))
    await isRunning(name)
    return run
  }
  /** What the caller is told at once; the agent is still the daemon's, and ends when it is told to. */
  const isLost = async (run: Begun, name: string): Promise<void> => {
    expect(await run.exited).toBe(255)
    expect((await run.ended).err).toMatch(LOST)
    expect(await stateOf(name)).toBe('running')
    expect((await here.puzzlectl(WHO.root, 'signal', name, 'KILL')).status).toBe(0)
    await eventually(async () => {
      if ((await stateOf(name)) === 'running') throw new Error('Not yet')
    })
  }

  it('that breaks off ends the call', async () => {
    const run = await waiting('broken')
    machine?.signalConnections('SIGKILL')
    await isLost(run, 'broken')
  })

  it('of which nothing is heard any more ends the call', async () => {
    const run = await waiting('silent')
    machine?.signalConnections('SIGSTOP')
    await isLost(run, 'silent')
    machine?.signalConnections('SIGKILL')
  })
})
