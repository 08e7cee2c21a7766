import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REVIEWER, type Workplace, workplace } from './cli.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

let here: Workplace
beforeAll(() => {
  here = workplace()
})
afterAll(() => here.remove())

interface Told {
  commit: string
  state: string
  entries: { path: string; kind: string }[]
  requester: number
  command: string[]
  approvals: { by: number; why: string }[]
  policies: { name: string }[]
}

const blame = async (...args: string[]): Promise<Told[]> =>
  JSON.parse((await here.puzzlectl('blame', '--json', ...args)).out) as Told[]

it('tells which agents made a file what it is, and who let it through', async () => {
  await here.puzzlectl('run', '--', 'sh', '-c', 'mkdir src; echo one > src/a.txt')
  await here.puzzlectl(
    'run',
    '--then',
    'hold',
    '--name',
    'second',
    '--',
    'sh',
    '-c',
    'echo two > src/a.txt; echo b > b.txt',
  )
  await here.asUser(REVIEWER, 'approve', 'second', '-m', 'looked at it')
  const [newest, oldest, ...rest] = await blame(join(here.project, 'src/a.txt'))
  expect(rest).toEqual([])
  expect(newest).toMatchObject({
    state: 'landed',
    entries: [{ path: join(here.project, 'src/a.txt'), kind: 'modify' }],
    requester: 1000,
    approvals: [{ by: REVIEWER, why: 'looked at it' }],
  })
  expect(newest?.policies.length).toBeGreaterThan(0)
  expect(oldest).toMatchObject({
    entries: [{ kind: 'add' }],
    command: ['sh', '-c', 'mkdir src; echo one > src/a.txt'],
    approvals: [],
  })
  // By a relative path, for a directory, and for what is gone.
  rmSync(join(here.project, 'src'), { recursive: true })
  expect((await blame('src/a.txt', '-n', '1')).map(({ commit }) => commit)).toEqual([newest?.commit])
  expect((await blame('.')).map(({ commit }) => commit)).toEqual([newest?.commit, oldest?.commit])
  const text = await here.puzzlectl('blame', 'src/a.txt')
  expect([text.status, text.out]).toEqual([
    0,
    expect.stringMatching(/approved {2}by uid 1001, .*: looked at it/),
  ])
  expect((await here.puzzlectl('blame', 'never')).status).toBe(68)
})

it('a commit that was taken back says so', async () => {
  await here.puzzlectl('run', '--', 'sh', '-c', 'echo c > c.txt')
  const [{ commit } = { commit: '' }] = await blame('c.txt')
  expect((await here.puzzlectl('revert', commit)).status).toBe(0)
  expect(await blame('c.txt')).toMatchObject([{ commit, state: 'reverted' }])
})

describe('a daemon', () => {
  const { here: bus, it: check } = onBus('each')
  const { developer, reviewer } = WHO
  const path = (name: string): string => join(bus.project, name)
  const sh = (script: string, ...options: string[]) =>
    bus.puzzlectl(developer, 'run', ...options, '--', 'sh', '-c', script)
  const told = async (name: string): Promise<Told[]> =>
    JSON.parse((await bus.puzzlectl(developer, 'blame', '--json', path(name))).out) as Told[]

  check('follows a file under both of its names, as far as a reviewer let it go, and back', async () => {
    expect((await sh('echo one > old.txt')).status).toBe(0)
    await sh('mv old.txt new.txt; echo more > other.txt', '--then', 'hold', '--name', 'moved')
    const part = ['--only', 'old.txt', '--only', 'new.txt', '-m', 'only the name']
    expect((await bus.puzzlectl(reviewer, 'approve', 'moved', ...part)).status).toBe(0)

    const [added, ...others] = await told('new.txt')
    expect(others).toEqual([])
    expect(added).toMatchObject({
      state: 'landed',
      entries: [{ path: path('new.txt'), kind: 'add' }],
      requester: developer.uid,
      approvals: [{ by: reviewer.uid, why: 'only the name' }],
    })
    const [removed, first, ...rest] = await told('old.txt')
    expect(rest).toEqual([])
    expect(removed).toMatchObject({ commit: added?.commit, entries: [{ kind: 'delete' }] })
    expect(first).toMatchObject({ state: 'landed', entries: [{ kind: 'add' }], approvals: [] })
    // What was not taken landed nowhere, so nobody is named for it.
    expect((await bus.puzzlectl(developer, 'blame', path('other.txt'))).status).toBe(68)

    expect((await bus.puzzlectl(developer, 'revert', added?.commit ?? '')).status).toBe(0)
    expect((await told('new.txt')).find(({ commit }) => commit === added?.commit)?.state).toBe('reverted')
    const states = (await told('old.txt')).map(({ commit, state }) => [commit, state])
    expect(states).toContainEqual([added?.commit, 'reverted'])
    expect(states).toContainEqual([first?.commit, 'landed'])
  })
})
