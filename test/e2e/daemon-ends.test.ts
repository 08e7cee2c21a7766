import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { cgroupHierarchy } from '../../daemon/kernel/cgroup.ts'
import { onBus } from './grounds.ts'
import { end, eventually, WHO } from './private-bus.ts'

const { here, it } = onBus('each')

const { developer } = WHO
interface Row {
  id: string
  state: string
}
const rows = async (): Promise<Row[]> =>
  JSON.parse((await here.puzzlectl(developer, 'ls', '--json')).out) as Row[]
const until = (state: string): Promise<Row> =>
  eventually(async () => {
    const row = (await rows()).find((one) => one.state === state)
    if (row === undefined) throw new Error(`No branch is ${state}: ${JSON.stringify(await rows())}`)
    return row
  })
const cgroupOf = (id: string): string => join(cgroupHierarchy() ?? '', 'puzzle.slice', `puzzle-${id}.scope`)
/** systemd removes a scope a moment after its last process. */
const cgroupGone = (id: string) => expect.poll(() => existsSync(cgroupOf(id))).toBe(false)
/** An agent that has written something and then runs until it is ended. */
const busy = () =>
  here.puzzlectl(developer, 'run', '--', 'sh', '-c', 'echo kept > kept.txt; echo ready; exec sleep 600')
const written = (id: string): Promise<string> =>
  eventually(async () => {
    const { out } = await here.puzzlectl(developer, 'diff', '--name-only', id)
    if (out !== 'kept.txt\n') throw new Error(`Not yet: ${out}`)
    return out
  })

describe('a daemon that is killed', () => {
  it('says so to whoever waits, and after a restart the branch is stopped with its writes', async () => {
    const waiting = busy()
    const { id } = await until('running')
    await written(id)
    expect(existsSync(cgroupOf(id))).toBe(true)
    await end(here.daemon, 'SIGKILL')
    await here.start()
    // The agent had the pipes of the waiting client: they close when recovery has ended it.
    const { status, err } = await waiting
    expect([status, err]).toEqual([69, expect.stringContaining('went away')])
    expect(await rows()).toMatchObject([{ id, state: 'stopped' }])
    await cgroupGone(id)
    expect(await written(id)).toBe('kept.txt\n')
    expect(readdirSync(here.project)).toEqual([])
    const committed = await here.puzzlectl(developer, 'commit', id)
    expect(committed.err).toBe('')
    expect((await here.puzzlectl(developer, 'discard', id)).status).toBe(0)
  })

  it('ends its agents when it is stopped in order', async () => {
    const waiting = busy()
    const { id } = await until('running')
    await written(id)
    await end(here.daemon, 'SIGTERM')
    expect((await waiting).status).toBe(69)
    await here.start()
    expect(await rows()).toMatchObject([{ id, state: 'stopped' }])
    await cgroupGone(id)
  })
})

describe('a bus that goes away', () => {
  it('ends a waiting client with an error, and the daemon with another', async () => {
    const waiting = busy()
    const { id } = await until('running')
    await written(id)
    const daemon = once(here.daemon, 'exit')
    await end(here.bus, 'SIGKILL')
    const { status, err } = await waiting
    expect([status, err]).toEqual([69, expect.stringContaining('went away')])
    expect(await daemon).toEqual([69, null])
    expect(here.said()).toContain('The message bus went away')
    await cgroupGone(id)
  })
})

describe('a second daemon', () => {
  const second = async (config: string): Promise<{ status: number; err: string }> => {
    const program = fileURLToPath(new URL('../../dist/puzzled.js', import.meta.url))
    const child = spawn(process.execPath, [program, '--config', config], {
      env: { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: here.address },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let err = ''
    child.stderr.on('data', (text: Buffer) => {
      err += text
    })
    const [status] = (await once(child, 'close')) as [number]
    return { status, err }
  }

  it('is refused on the same store, and on the same bus with another store', async () => {
    expect(await second(here.config)).toEqual({
      status: 75,
      err: expect.stringMatching(/another process|in use|locked/i),
    })
    const other = `${here.config}.other`
    writeFileSync(
      other,
      readFileSync(here.config, 'utf8').replace(/^state_dir: .*$/m, `state_dir: ${here.state}-2`),
    )
    expect(await second(other)).toEqual({ status: 75, err: expect.stringContaining('owns org.puzzled1') })
    expect((await here.puzzlectl(developer, 'ls')).status).toBe(0)
  })
})

describe('reload', () => {
  it('keeps what it has when the new configuration is broken', async () => {
    const good = readFileSync(here.config, 'utf8')
    writeFileSync(here.config, `${good}unknown_key: 1\n`)
    here.daemon.kill('SIGHUP')
    await eventually(async () => {
      if (!here.said().includes('unknown_key')) throw new Error('Not yet')
    })
    const { status } = await here.puzzlectl(developer, 'run', '--', 'sh', '-c', 'echo a > a.txt')
    expect(status).toBe(0)
    expect(readdirSync(here.project)).toEqual(['a.txt'])
  })
})
