import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { REVIEWER, type Workplace, workplace } from './cli.ts'

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
