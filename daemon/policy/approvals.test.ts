import { beforeEach, describe, expect, it } from 'vitest'
import { makeChangeset, makeRecord } from '../../test/fakes/changesets.ts'
import { MemoryRecords } from '../../test/fakes/record-files.ts'
import type { Requester } from '../contract/branch.ts'
import type { Verdict } from '../contract/verdict.ts'
import { termsOf } from './approval.ts'
import { ApprovalStore } from './approvals.ts'

const person = (uid: number): Requester => ({ uid, gid: uid, groups: [], name: `u${uid}` })
const changeset = makeChangeset([{ path: 'a' }])
const other = makeChangeset([{ path: 'b' }])
const record = makeRecord()
const policies = [{ name: 'commit', sha256: 'a'.repeat(64) }]
const verdict = (obligations: readonly string[] = []): Verdict => ({
  kind: 'hold',
  digest: changeset.digest,
  tier: 'approval_required',
  deny: [],
  hold: [],
  warn: [],
  obligations,
  policies,
  durationMs: 1,
  shadow: false,
})

let files: MemoryRecords
let now: Date
let store: ApprovalStore
const approve = (uid: number, digest = changeset.digest) =>
  store.decide(record, digest, 'approve', person(uid), 'looked at it')
const reject = (uid: number) => store.decide(record, changeset.digest, 'reject', person(uid), 'no')
const check = (digest = changeset.digest, set = policies) => store.check(record, digest, set)

beforeEach(() => {
  files = new MemoryRecords()
  now = new Date('2026-01-01T00:00:00Z')
  store = new ApprovalStore(files, '/approvals', () => now)
})

describe('an approval', () => {
  it('lets exactly the approved digest through, once', async () => {
    await store.request(record, changeset, verdict())
    await expect(check()).rejects.toThrow(/1 more approval/)
    expect(await approve(1)).toEqual({ complete: true, missing: 0 })
    const { id } = await check()
    await expect(check(other.digest)).rejects.toMatchObject({ code: 'approval-invalid' })
    await store.consume(id, 'c1')
    await expect(check()).rejects.toThrow(/commit c1 has used it/)
    await expect(store.consume(id, 'c2')).rejects.toThrow(/commit c1 has used it/)
  })

  it('is consumed again by the commit that died after consuming it, and by no other', async () => {
    await store.request(record, changeset, verdict())
    await approve(1)
    const { id } = await check()
    await store.consume(id, 'c1')
    const after = new ApprovalStore(files, '/approvals', () => now)
    await expect(after.consume(id, 'c1')).resolves.toBeUndefined()
    await expect(after.consume(id, 'c2')).rejects.toMatchObject({ code: 'approval-invalid' })
  })

  it('is used by one of two commits that race', async () => {
    await store.request(record, changeset, verdict())
    await approve(1)
    const { id } = await check()
    const results = await Promise.allSettled([store.consume(id, 'c1'), store.consume(id, 'c2')])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  it('is void when the policy changed after the review, and says so', async () => {
    await store.request(record, changeset, verdict())
    await approve(1)
    await expect(check(changeset.digest, [{ name: 'commit', sha256: 'b'.repeat(64) }])).rejects.toThrow(
      /policy changed after the review/,
    )
    await expect(
      check(changeset.digest, [...policies, { name: 'house', sha256: 'c'.repeat(64) }]),
    ).rejects.toThrow(/policy changed/)
  })

  it('survives a restart', async () => {
    await store.request(record, changeset, verdict())
    await approve(1)
    const restarted = new ApprovalStore(files, '/approvals', () => now)
    await expect(restarted.check(record, changeset.digest, policies)).resolves.toMatchObject({
      id: expect.stringMatching(/^a/),
    })
  })

  it('expires: nobody in time is a refusal, and so is a late use', async () => {
    await store.request(record, changeset, verdict(['expires:60']))
    now = new Date('2026-01-01T00:01:00Z')
    await expect(approve(1)).rejects.toThrow(/expired/)
    now = new Date('2026-01-01T00:00:59Z')
    await approve(1)
    const { id } = await check()
    now = new Date('2026-01-01T00:01:00Z')
    await expect(check()).rejects.toThrow(/expired/)
    await expect(store.consume(id, 'c1')).rejects.toThrow(/expired/)
  })

  it('is asked for anew after it expired, without the old decisions', async () => {
    await store.request(record, changeset, verdict(['expires:60']))
    await approve(1)
    now = new Date('2026-01-01T01:00:00Z')
    await store.request(record, changeset, verdict(['expires:60']))
    await expect(check()).rejects.toThrow(/1 more approval/)
  })

  it('of a part is bound to the part', async () => {
    await store.request(record, changeset, verdict())
    const judged = { ...record, verdict: verdict() }
    await store.decide(judged, other.digest, 'approve', person(1), 'only this')
    await expect(store.check(judged, other.digest, policies)).resolves.toMatchObject({
      id: expect.stringMatching(/^a/),
    })
    await expect(check()).rejects.toThrow(/1 more approval/)
    await expect(approve(1, 'c'.repeat(64))).rejects.toThrow(/not judged/)
  })
})

describe('several reviewers', () => {
  it('make a quorum of different people', async () => {
    await store.request(record, changeset, verdict(['quorum:2']))
    expect(await approve(1)).toEqual({ complete: false, missing: 1 })
    expect(await approve(1)).toEqual({ complete: false, missing: 1 })
    expect(await approve(2)).toEqual({ complete: true, missing: 0 })
  })

  it('deny wins, before and after an approval', async () => {
    await store.request(record, changeset, verdict(['quorum:2']))
    await approve(1)
    expect(await reject(2)).toMatchObject({ complete: false })
    await expect(approve(3)).rejects.toThrow(/rejected/)
    await expect(check()).rejects.toThrow(/rejected/)
  })

  it('exclude the requester where the policy says so', async () => {
    await store.request(record, changeset, verdict(['other-reviewer']))
    await expect(approve(record.requester.uid)).rejects.toMatchObject({ code: 'access-denied' })
    await expect(reject(record.requester.uid)).resolves.toMatchObject({ complete: false })
  })
})

describe('approval records', () => {
  it('approve nothing when they are damaged', async () => {
    await store.request(record, changeset, verdict())
    await approve(1)
    const [path, bytes] = [...files.files][0] ?? ['', Buffer.alloc(0)]
    for (const damaged of [
      '',
      '{',
      '{}',
      bytes.toString().replace('"approve"', '"maybe"'),
      bytes.toString().replace(record.id, '9999999999'),
    ]) {
      files.files.set(path, Buffer.from(damaged))
      await expect(check()).rejects.toMatchObject({ code: 'record-damaged' })
    }
  })

  it('of other branches may be damaged: what is approved can be used all the same', async () => {
    await store.request(record, changeset, verdict())
    await approve(1)
    const { id } = await check()
    const [path, bytes] = [...files.files][0] ?? ['', Buffer.alloc(0)]
    files.files.set(path.replace(record.id, '2222222222'), Buffer.from('{'))
    await store.consume(id, 'c1')
    // It may be the damaged one that carries this id: that is no "unknown".
    await expect(store.consume('a2', 'c1')).rejects.toMatchObject({ code: 'record-damaged' })
    files.files.set(path, bytes.subarray(1))
    await expect(store.consume(id, 'c1')).rejects.toMatchObject({ code: 'record-damaged' })
  })

  it('say nothing before they are durable', async () => {
    await store.request(record, changeset, verdict())
    files.failWrites = true
    await expect(approve(1)).rejects.toMatchObject({ code: 'ENOSPC' })
    files.failWrites = false
    await expect(check()).rejects.toThrow(/1 more approval/)
  })

  it('refuse terms that cannot be read', () => {
    expect(() => termsOf(['quorum:many'])).toThrow(/positive number/)
    expect(() => termsOf(['expires:-1'])).toThrow(/positive number/)
    expect(termsOf(['notify', 'quorum:2', 'quorum:3', 'expires:10', 'expires:5'])).toMatchObject({
      quorum: 3,
      expires: 5,
    })
  })
})
