import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

interface Report {
  testResults: { assertionResults: { title: string; status: string; failureMessages: string[] }[] }[]
}

/** The guard behind the tests of these tiers, seen from outside: a whole run of the runner over tests that leak. */
needs(root)('a test that leaves something behind is red, and one that does not is green', () => {
  const config = 'test/fixtures/leaks/vitest.config.ts'
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--root', '.', '--config', config, '--reporter=json']
  const done = spawnSync(process.execPath, args, { cwd: repository, encoding: 'utf8' })
  expect(done.status, done.stderr).toBe(1)
  const report = JSON.parse(done.stdout.slice(done.stdout.indexOf('{'))) as Report
  const results = report.testResults.flatMap(({ assertionResults }) => assertionResults)
  const said = (kind: string): unknown =>
    expect.stringMatching(new RegExp(`left something behind[^]*${kind}`))
  expect(
    results.map(({ title, status, failureMessages }) => [title, status, failureMessages.join()]),
  ).toEqual([
    ['leaves nothing', 'passed', ''],
    ['leaves a mount', 'failed', said('mounted type tmpfs')],
    ['leaves a process', 'failed', said('sleep')],
    ['leaves a file', 'failed', said('file')],
    ['leaves a descriptor', 'failed', said('/status')],
  ])
})
