import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect } from 'vitest'
import { METRICS } from '../../daemon/metrics/table.ts'
import { type Family, parseOpenMetrics } from '../metrics/openmetrics.ts'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

const { here, it } = onBus('all', program('curl'))
let socket = ''
beforeAll(() => {
  if (here.config !== undefined) socket = join(dirname(here.config), 'run', 'metrics.sock')
})

const { root, developer, reviewer } = WHO
const read = async (): Promise<Map<string, Family>> =>
  parseOpenMetrics((await here.puzzlectl(root, 'metrics', '--socket', socket)).out)

/** Sum of the samples of a line whose labels have these values. */
const sum = (families: Map<string, Family>, line: string, labels: Record<string, string> = {}): number =>
  [...families.values()]
    .flatMap(({ samples }) => samples)
    .filter(
      ({ name, labels: own }) =>
        name === line && Object.entries(labels).every(([key, value]) => own[key] === value),
    )
    .reduce((all, { value }) => all + value, 0)

it('is for root and reviewers', async () => {
  expect(statSync(socket).mode & 0o777).toBe(0o660)
  expect((await here.puzzlectl(reviewer, 'metrics', '--socket', socket)).status).toBe(0)
  const refused = await here.puzzlectl(developer, 'metrics', '--socket', socket)
  expect([refused.status, refused.out]).toEqual([77, ''])
})

it('counts what happens, and every documented metric is there', async () => {
  const before = await read()
  expect([...before.keys()]).toEqual(Object.keys(METRICS))
  const run = await here.puzzlectl(developer, 'run', '--', 'sh', '-c', 'echo a > a.txt; echo b > b.txt')
  expect(run.status).toBe(0)
  await here.puzzlectl(
    developer,
    'run',
    '--',
    'sh',
    '-c',
    'curl -s http://nowhere.invalid/; getent hosts nowhere.invalid',
  )
  const after = await read()
  const grown = (line: string, labels?: Record<string, string>): number =>
    sum(after, line, labels) - sum(before, line, labels)
  expect(grown('puzzled_start_seconds_count', { result: 'ok' })).toBe(2)
  expect(grown('puzzled_commit_seconds_count', { result: 'ok' })).toBe(1)
  expect(grown('puzzled_commit_changes_total')).toBeGreaterThanOrEqual(2)
  expect(grown('puzzled_gate_seconds_count', { verdict: 'allow' })).toBe(1)
  expect(grown('puzzled_branch_moves_total', { to: 'committed' })).toBe(1)
  expect(grown('puzzled_agent_exits_total', { cause: 'exited' })).toBe(2)
  expect(grown('puzzled_audit_append_seconds_count', { result: 'ok' })).toBeGreaterThan(5)
  expect(grown('puzzled_denials_total', { layer: 'dns' })).toBeGreaterThan(0)
})

it('says nothing that an agent chose', async () => {
  const names = ['nowhere.invalid', 'a.txt', 'branch-of-mine']
  await here.puzzlectl(
    developer,
    'run',
    '--name',
    'branch-of-mine',
    '--',
    'getent',
    'hosts',
    'nowhere.invalid',
  )
  const { out } = await here.puzzlectl(root, 'metrics', '--socket', socket)
  for (const name of names) expect(out).not.toContain(name)
})
