import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { patience } from '../tier/patience.ts'
import { onBus } from './grounds.ts'
import { eventually, WHO } from './private-bus.ts'

const { here, it: check } = onBus('each')

const { developer } = WHO
const start = async (script: string, ...options: string[]): Promise<string> => {
  const command = ['run', '--detach', ...options, '--', 'sh', '-c', script]
  const { out, err, status } = await here.puzzlectl(developer, ...command)
  expect([status, err]).toEqual([0, ''])
  return out.trim()
}
const stateOf = async (id: string): Promise<string> => {
  const { out } = await here.puzzlectl(developer, 'show', id, '--json')
  return (JSON.parse(out) as { state: string }).state
}
const until = (id: string, state: string) => expect.poll(() => stateOf(id)).toBe(state)

/** Nobody waits for these. */
describe('a detached branch is finished by the daemon', () => {
  check('and its work lands, as asked', async () => {
    const id = await start('echo a > a.txt')
    await until(id, 'committed')
    expect(readdirSync(here.project)).toEqual(['a.txt'])
    const late = await here.puzzlectl(developer, 'wait', id)
    expect([late.status, late.out]).toEqual([0, expect.stringContaining('+1 ~0 -0')])
  })

  check('and held, thrown away or kept for a person, as asked', async () => {
    const held = await start('echo a > a.txt', '--then', 'hold')
    const failed = await start('echo a > b.txt; exit 3')
    const nothing = await start('echo a > c.txt; exit 4', '--then', 'discard')
    await until(held, 'held')
    await until(failed, 'held')
    await expect.poll(() => readdirSync(join(here.state, 'branches')).length).toBe(2)
    const ended = await here.puzzlectl(developer, 'wait', nothing)
    expect([ended.status, ended.err, here.said()]).toEqual([4, '', ''])
    expect((await here.puzzlectl(developer, 'wait', failed)).status).toBe(3)
    expect((await here.puzzlectl(WHO.colleague, 'wait', nothing)).status).toBe(68)
    expect(readdirSync(here.project)).toEqual([])
  })

  check('also when the terminal that started it has gone', async () => {
    const words = ['run', '--', 'sh', '-c', `echo a > a.txt; sleep ${5 * patience}`]
    const child = spawn(process.execPath, [PUZZLECTL, ...words], {
      cwd: here.project,
      env: { PATH: process.env.PATH, DBUS_SYSTEM_BUS_ADDRESS: here.address },
      stdio: 'ignore',
    })
    const id = await eventually(async () => {
      const [row] = JSON.parse((await here.puzzlectl(WHO.root, 'ls', '--json')).out) as { id: string }[]
      if (row === undefined) throw new Error('Not yet')
      return row.id
    })
    child.kill('SIGKILL')
    await eventually(async () => {
      if (existsSync(`/proc/${child.pid}`)) throw new Error('Not yet')
    })
    await expect.poll(() => existsSync(join(here.project, 'a.txt'))).toBe(true)
    const record = join(here.state, 'branches', id, 'branch.json')
    await expect.poll(() => JSON.parse(readFileSync(record, 'utf8'))).toMatchObject({ state: 'committed' })
  })
})

const PUZZLECTL = new URL('../../dist/puzzlectl.js', import.meta.url).pathname
