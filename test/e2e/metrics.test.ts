import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { beforeAll, expect } from 'vitest'
import { parse, stringify } from 'yaml'
import { packageRoot } from '../../daemon/lib/assets.ts'
import { METRICS } from '../../daemon/metrics/table.ts'
import { type Family, parseOpenMetrics } from '../metrics/openmetrics.ts'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { eventually, WHO } from './private-bus.ts'

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
  await here.puzzlectl(developer, 'run', '--restart', 'always:2', '--', 'true')
  const after = await read()
  const grown = (line: string, labels?: Record<string, string>): number =>
    sum(after, line, labels) - sum(before, line, labels)
  expect(grown('puzzled_start_seconds_count', { result: 'ok' })).toBe(3)
  expect(grown('puzzled_commit_seconds_count', { result: 'ok' })).toBe(1)
  expect(grown('puzzled_commit_changes_total')).toBeGreaterThanOrEqual(2)
  expect(grown('puzzled_gate_seconds_count', { verdict: 'allow' })).toBe(1)
  expect(grown('puzzled_branch_moves_total', { to: 'committed' })).toBe(1)
  expect(grown('puzzled_agent_exits_total', { cause: 'exited' })).toBe(3)
  expect(grown('puzzled_agent_restarts_total')).toBe(2)
  expect(grown('puzzled_audit_append_seconds_count', { result: 'ok' })).toBeGreaterThan(5)
  expect(grown('puzzled_denials_total', { layer: 'dns' })).toBeGreaterThan(0)
})

it('counts a request that waits, what was refused, and a budget that is used up', async () => {
  const before = await read()
  const run = (...words: string[]) => here.puzzlectl(developer, 'run', ...words)
  const asks =
    'curl -sS -m 20 -o /dev/null -d one https://api.github.com/repos/a/b/issues; ' +
    'curl -s -m 20 -o /dev/null http://elsewhere.example/; echo c > c.txt'
  await run('--name', 'asks', '--then', 'hold', '--', 'sh', '-c', asks)
  const started = here.begin(developer, 'run', '--name', 'long', '--budget', 'wall=1s', '--', 'sleep', '600')
  const exceeded = (families: Map<string, Family>): number =>
    sum(families, 'puzzled_budget_exceeded_total', { budget: 'wall' })
  const after = await eventually(async () => {
    const now = await read()
    if (exceeded(now) === exceeded(before)) throw new Error('The budget is not used up yet')
    return now
  })
  const grown = (line: string, labels?: Record<string, string>): number =>
    sum(after, line, labels) - sum(before, line, labels)

  expect(grown('puzzled_queue_requests_total', { state: 'queued' })).toBe(1)
  expect(grown('puzzled_queue_requests_total')).toBe(1)
  expect(grown('puzzled_denials_total', { layer: 'proxy' })).toBe(1)
  expect(grown('puzzled_proxy_request_seconds_count')).toBe(2)
  expect(grown('puzzled_budget_exceeded_total')).toBe(1)
  expect(grown('puzzled_branch_moves_total', { to: 'held' })).toBe(1)
  expect(grown('puzzled_commit_seconds_count')).toBe(0)
  // The one that used up its time is there, standing still; nothing else runs.
  expect(sum(after, 'puzzled_agents')).toBe(1)
  expect(sum(after, 'puzzled_event_loop_busy_ratio')).toBeLessThanOrEqual(1)
  expect(sum(after, 'process_resident_memory_bytes')).toBeGreaterThan(20e6)

  expect((await here.puzzlectl(developer, 'discard', 'long')).status).toBe(0)
  await started.ended
  expect((await here.puzzlectl(reviewer, 'reject', 'asks')).status).toBe(0)
  const last = await read()
  expect(sum(last, 'puzzled_agents')).toBe(0)
  const decided = (families: Map<string, Family>): number =>
    sum(families, 'puzzled_approvals_total', { decision: 'reject' })
  expect(decided(last) - decided(after)).toBe(1)
})

/** A profile whose agents may talk to a server of this test, now and without being held back. */
function talkingTo(port: number): string {
  const standard = parse(readFileSync(join(packageRoot(), 'policies/profiles/standard.yaml'), 'utf8'))
  const rule = { id: 'server', hosts: ['127.0.0.1'], ports: [port], addresses: ['127.0.0.1/32'] }
  const rules = [{ ...rule, methods: ['GET'], class: 'live', why: 'The server of this test.' }]
  const file = join(here.project, 'talking.yaml')
  writeFileSync(
    file,
    stringify({ ...standard, name: 'talking', network: { mode: 'gated', why: 'One server.', rules } }),
  )
  return file
}

it('counts in every documented metric once an agent ran, asked, was denied, stood still and landed', async () => {
  const server = createServer((_request, response) => response.end('answered'))
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  try {
    const { port } = server.address() as AddressInfo
    const run = (...words: string[]) => here.puzzlectl(developer, 'run', ...words)
    const get = `curl -sS --noproxy "" -x http://127.0.0.1:3128 http://127.0.0.1:${port}/`
    // A profile that allows more than the machine's own is root's business.
    const talked = await here.puzzlectl(root, 'run', '--profile', talkingTo(port), '--', 'sh', '-c', get)
    expect([talked.out, talked.err]).toEqual([expect.stringContaining('answered'), expect.anything()])
    await run('--', 'sh', '-c', 'getent hosts nowhere.invalid; echo d > d.txt')
    const post = 'curl -sS -m 20 -o /dev/null -d one https://api.github.com/repos/a/b/issues'
    await run('--name', 'waits', '--then', 'hold', '--', 'sh', '-c', post)
    expect((await here.puzzlectl(reviewer, 'reject', 'waits')).status).toBe(0)
    const still = here.begin(developer, 'run', '--name', 'still', '--budget', 'wall=1s', '--', 'sleep', '600')
    await eventually(async () => {
      const listed = JSON.parse((await here.puzzlectl(developer, 'ls', '--json')).out) as { state: string }[]
      if (listed.every(({ state }) => state !== 'frozen')) throw new Error('not yet')
    })
    // More is for others to give.
    expect((await here.puzzlectl(developer, 'budget', 'still', 'wall=1s')).status).toBe(77)
    const families = await read()
    const silent = [...families.values()].filter(({ samples }) => samples.every(({ value }) => value === 0))
    // On a busy machine a second's budget goes from less than 90 % to all of it between two looks.
    const quiet = silent.map(({ name }) => name).filter((name) => name !== 'puzzled_budget_warnings')
    expect(quiet).toEqual([])
    expect([...families.keys()]).toEqual(Object.keys(METRICS))
    expect((await here.puzzlectl(developer, 'discard', 'still')).status).toBe(0)
    await still.ended
  } finally {
    server.close()
  }
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
