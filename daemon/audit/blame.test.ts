import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { blame } from './blame.ts'
import { AuditLog } from './log.ts'
import { branchOf, encodeRecord, FIRST_PREV } from './record.ts'

let directory = ''
let log: AuditLog

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'puzzled-blame-'))
  log = await AuditLog.open(directory, { now: () => new Date(0), segmentBytes: 2_000 })
})
afterEach(async () => {
  await log.close()
  await rm(directory, { recursive: true })
})

const entry = (path: string, kind = 'modify') => ({ path, kind, sha256: 'ab'.repeat(32) })

/** One branch from its fork to its commit. */
async function commits(
  branch: string,
  commit: string,
  paths: readonly string[],
  landed = true,
): Promise<void> {
  await log.append('fork', branch, {
    name: 'fix',
    profile: 'standard',
    profileSha256: 'p',
    requester: 33,
    command: ['sh', '-c', 'x'],
  })
  await log.append('exit', branch, { code: 0, signal: null, cause: 'exited' })
  await log.append('verdict', branch, {
    digest: `d-${commit}`,
    verdict: 'hold',
    policies: [{ name: 'commit', sha256: 's' }],
  })
  await log.append('approve', branch, { digest: 'another', by: 1, why: 'not this' })
  await log.append('approve', branch, { digest: `d-${commit}`, by: 8, why: 'fine' })
  await log.append('commit', branch, { commit, digest: `d-${commit}`, approval: 'a', requests: ['r1'] })
  await log.append('commit-paths', branch, { commit, paths: paths.map((path) => entry(path)) })
  if (landed) await log.append('committed', branch, { commit, digest: `d-${commit}`, files: paths.length })
}

describe('blame', () => {
  it('tells who made a path what it is, newest first, over segments', async () => {
    for (let count = 0; count < 30; count++)
      await commits(`b${count}`, `c${count}`, [`/p/only${count}`, '/p/often'])
    const found = await blame(directory, '/p/often', 3)
    expect(found.map(({ commit }) => commit)).toEqual(['c29', 'c28', 'c27'])
    expect(await blame(directory, '/p/only3', 5)).toEqual([
      {
        commit: 'c3',
        time: '1970-01-01T00:00:00.000Z',
        seq: expect.any(Number),
        state: 'landed',
        entries: [entry('/p/only3')],
        branch: 'b3',
        name: 'fix',
        profile: 'standard',
        profileSha256: 'p',
        requester: 33,
        command: ['sh', '-c', 'x'],
        exit: { code: 0, signal: null, cause: 'exited' },
        digest: 'd-c3',
        verdict: 'hold',
        policies: [{ name: 'commit', sha256: 's' }],
        approvals: [{ by: 8, why: 'fine', time: '1970-01-01T00:00:00.000Z' }],
        requests: ['r1'],
      },
    ])
  })

  it('finds what is below a directory, and nothing that only looks like it', async () => {
    await commits('b1', 'c1', ['/p/a/x', '/p/a"/y', '/p/ab'])
    const [found] = await blame(directory, '/p/a', 5)
    expect(found?.entries.map(({ path }) => path)).toEqual(['/p/a/x'])
    await expect(blame(directory, '/p/abc', 5)).rejects.toMatchObject({ code: 'branch-unknown' })
    await expect(blame(directory, 'x', 5)).rejects.toMatchObject({ code: 'branch-unknown' })
  })

  it('says what became of a commit: reverted, or decided and never said to be done', async () => {
    await commits('b1', 'c1', ['/p/a'])
    await log.append('reverted', 'c1', { by: 'c9', files: 1 })
    await commits('b2', 'c2', ['/p/a'], false)
    expect((await blame(directory, '/p/a', 5)).map(({ commit, state }) => [commit, state])).toEqual([
      ['c2', 'decided'],
      ['c1', 'reverted'],
    ])
    await log.append('recovered', 'b2', { landed: true })
    expect((await blame(directory, '/p/a', 1))[0]).toMatchObject({ commit: 'c2', state: 'landed' })
  })

  it('is not misled by names that look like records', async () => {
    await commits('b1', 'c1', ['/p/"kind":"commit-paths"', '/p/","branch":"b9'])
    await log.append('start', 'b2', { command: ['"kind":"commit-paths"', '"/p/forged"'] })
    await expect(blame(directory, '/p/forged', 5)).rejects.toMatchObject({ code: 'branch-unknown' })
    expect((await blame(directory, '/p/","branch":"b9', 5))[0]).toMatchObject({ branch: 'b1' })
  })
})

it('reads the branch of a line without parsing it', () => {
  const base = { seq: 1, prev: FIRST_PREV, time: '2026-01-01T00:00:00.000Z' }
  for (const branch of ['', 'tn24kz3qj4', 'c-3'])
    expect(branchOf(encodeRecord({ ...base, kind: 'start', branch, facts: { branch: 'other' } }))).toBe(
      branch,
    )
})
