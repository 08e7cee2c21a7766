import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { needs } from './tier/needs.ts'

const repository = fileURLToPath(new URL('..', import.meta.url))
const NOBODY = 65534

/** The root tier without root cannot run: what `npm test` then says is under test. */
function testAsNobody(mustRun: string): { status: number | null; last: string; output: string } {
  const done = spawnSync(process.execPath, ['tools/test.mjs', 'root'], {
    cwd: repository,
    encoding: 'utf8',
    env: { ...process.env, PUZZLED_MUST_RUN: mustRun, PUZZLED_VM: '1' },
    ...(process.geteuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}),
  })
  return { status: done.status, last: done.stdout.trim().split('\n').at(-1) ?? '', output: done.stdout }
}

function unreadable(): string | undefined {
  const probe = spawnSync(process.execPath, ['--check', 'tools/test.mjs'], {
    cwd: repository,
    ...(process.geteuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}),
  })
  return probe.status === 0 ? undefined : 'needs a checkout that every user can read'
}

const check = needs(unreadable())

check('a tier that cannot run is named with the reason, and counted', () => {
  const { status, last, output } = testAsNobody('')
  expect(output).toContain('skipped (not verified here) – root: needs root')
  expect({ status, last }).toEqual({ status: 0, last: '0 passed, 0 failed, 1 skipped' })
})

check('it fails when PUZZLED_MUST_RUN names it, or everything', () => {
  for (const mustRun of ['1', 'unit,root'])
    expect(testAsNobody(mustRun)).toMatchObject({ status: 1, last: '0 passed, 1 failed, 0 skipped' })
})

check('a demand for another tier leaves it skipped', () => {
  expect(testAsNobody('escape').status).toBe(0)
})

check('a name that no test has is an error, and not a run of nothing', () => {
  const done = spawnSync(process.execPath, ['tools/test.mjs', 'root', 'test/root/no-such-test'], {
    cwd: repository,
    encoding: 'utf8',
  })
  expect([done.status, done.stderr]).toEqual([2, 'No test begins with test/root/no-such-test\n'])
})

check('a test of many cases is skipped as one of a single case is', () => {
  const skipped = needs('needs a thing')
  expect([typeof skipped.for([1, 2]), typeof skipped.each([[1], [2]])]).toEqual(['function', 'function'])
})
