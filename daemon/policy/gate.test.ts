import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeChangeset, makeRecord } from '../../test/fakes/changesets.ts'
import { type Behaviour, policyModule } from '../../test/fakes/policy-module.ts'
import { packageRoot } from '../lib/assets.ts'
import { type GateOptions, PolicyGate } from './gate.ts'
import { policySources } from './policy-set.ts'

const dist = join(packageRoot(), 'policies/dist')
const harmless = makeChangeset([{ path: 'src/main.ts' }])
const ALLOW = { version: 1, allow: true, deny: [], hold: [], warn: [], tier: 'auto', obligations: [] }
const answer = (value: unknown): Behaviour => ({ kind: 'answer', text: JSON.stringify(value) })

let dir = ''
const gates: PolicyGate[] = []

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'puzzled-gate-'))
})
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.close()))
})
afterAll(() => rm(dir, { recursive: true }))

function makeGate(sources: GateOptions['sources'], options: Partial<GateOptions> = {}): PolicyGate {
  const gate = new PolicyGate({
    sources,
    contents: null,
    ...options,
    // A worker's start may take as long as an evaluation, and on a busy machine it does.
    limits: { workers: 1, timeoutMs: 50_000, memoryBytes: 64 * 1024 * 1024, ...options.limits },
  })
  gates.push(gate)
  return gate
}

async function custom(name: string, behaviour: Behaviour, entrypoints = ['house/decision']): Promise<string> {
  const file = join(dir, `${name}.wasm`)
  await writeFile(file, policyModule(behaviour, entrypoints))
  return file
}

/** The shipped policy and one more. */
const withPolicy = (file: string) => () => policySources({ directory: join(dir, 'none'), files: [file] })
const shipped = () => policySources({ directory: join(dir, 'none') })

describe('the gate', () => {
  it('allows what is harmless, with the version of the policy that said so', async () => {
    const verdict = await makeGate(shipped).evaluate(makeRecord(), harmless)
    expect(verdict).toMatchObject({
      kind: 'allow',
      digest: harmless.digest,
      shadow: false,
      deny: [],
      hold: [],
    })
    expect(verdict.policies).toEqual([{ name: 'commit', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }])
  })

  it('holds deletions that pass the budget, which no meter may have seen, and counts what a person added', async () => {
    const gone = makeChangeset(['a', 'b', 'c'].map((path) => ({ path, kind: 'delete' })))
    const { profile } = makeRecord()
    const budgets = { ...profile.resolved.budgets, limits: { deletions: 2 } }
    const record = { profile: { ...profile, resolved: { ...profile.resolved, budgets } } }
    const gate = makeGate(shipped)
    const verdict = await gate.evaluate(makeRecord(record), gone)
    expect([verdict.kind, verdict.hold.map(({ rule }) => rule)]).toEqual(['hold', ['mass-deletion']])
    const extended = makeRecord({ ...record, extensions: { deletions: 1 } })
    expect((await gate.evaluate(extended, gone)).kind).toBe('allow')
  })

  it('asks every policy: any hold holds, any deny denies', async () => {
    const finding = { rule: 'house', severity: 'high', message: 'a person must look' }
    const hold = await custom(
      'hold',
      answer([{ result: { ...ALLOW, allow: false, hold: [finding], tier: 'approval_required' } }]),
    )
    expect(await makeGate(withPolicy(hold)).evaluate(makeRecord(), harmless)).toMatchObject({
      kind: 'hold',
      tier: 'approval_required',
    })
    const deny = await custom(
      'deny',
      answer([{ result: { ...ALLOW, allow: false, deny: [finding], tier: 'forbidden' } }]),
    )
    expect(await makeGate(withPolicy(deny)).evaluate(makeRecord(), harmless)).toMatchObject({ kind: 'deny' })
    const allow = await custom('allow', answer([{ result: ALLOW }]))
    expect(await makeGate(withPolicy(allow)).evaluate(makeRecord(), harmless)).toMatchObject({
      kind: 'allow',
    })
  })

  it('marks what shadow mode would have done', async () => {
    const record = makeRecord()
    const shadow = {
      ...record,
      profile: { ...record.profile, resolved: { ...record.profile.resolved, enforce: 'shadow' as const } },
    }
    const verdict = await makeGate(shipped).evaluate(
      shadow,
      makeChangeset([{ path: '.git/hooks/pre-commit' }]),
    )
    expect(verdict).toMatchObject({ kind: 'hold', shadow: true })
  })
})

const BEHAVIOURS: readonly [what: string, behaviour: Behaviour, reason: RegExp][] = [
  ['a trap', { kind: 'trap' }, /unreachable/],
  ['an endless loop', { kind: 'loop' }, /no result within 400 ms/],
  ['an allocation without end', { kind: 'grow' }, /unreachable|memory/i],
  ['an empty result set (undefined)', answer([]), /0 entries/],
  ['two results', answer([{ result: ALLOW }, { result: ALLOW }]), /2 entries/],
  ['a result that is no JSON', { kind: 'answer', text: '[{"result":' }, /JSON/],
  ['true', answer([{ result: true }]), /malformed/],
  ['an unknown key', answer([{ result: { ...ALLOW, extra: 1 } }]), /malformed/],
  ['a missing key', answer([{ result: { ...ALLOW, hold: undefined } }]), /malformed/],
  [
    'an unknown severity',
    answer([{ result: { ...ALLOW, warn: [{ rule: 'r', severity: 'x', message: '' }] } }]),
    /malformed/,
  ],
  ['another version', answer([{ result: { ...ALLOW, version: 2 } }]), /malformed/],
  [
    'an allow that contradicts',
    answer([{ result: { ...ALLOW, deny: [{ rule: 'r', severity: 'critical', message: 'x' }] } }]),
    /contradicts/,
  ],
]

describe('a policy that fails', () => {
  it.each(BEHAVIOURS)('is not loaded: %s', async (_what, behaviour, reason) => {
    // Only what has no end is waited for that long: everything else may have a busy machine.
    const limits = behaviour.kind === 'loop' ? { timeoutMs: 400 } : {}
    const gate = makeGate(withPolicy(await custom('bad', behaviour)), { limits })
    const verdict = await gate.evaluate(makeRecord(), harmless)
    expect(verdict).toMatchObject({ kind: 'deny', tier: 'forbidden' })
    expect(verdict.deny[0]?.message).toMatch(reason)
    await expect(gate.warm()).rejects.toMatchObject({ code: 'policy-invalid' })
  })

  it('denies by a wrong entry point', async () => {
    const file = await custom('several', answer([{ result: ALLOW }]), ['a/decision', 'b/decision'])
    expect((await makeGate(withPolicy(file)).evaluate(makeRecord(), harmless)).deny[0]?.message).toMatch(
      /entry point/,
    )
  })

  it('denies by a missing file, by one that is no WebAssembly, and by a digest that differs', async () => {
    const absent = await makeGate(withPolicy(join(dir, 'absent.wasm'))).evaluate(makeRecord(), harmless)
    expect(absent.deny[0]?.message).toMatch(/absent\.wasm": ENOENT/)
    const text = join(dir, 'text.wasm')
    await writeFile(text, 'package commit')
    expect((await makeGate(withPolicy(text)).evaluate(makeRecord(), harmless)).deny[0]?.message).toMatch(
      /no WebAssembly/,
    )
    const copy = join(dir, 'dist')
    await mkdir(copy, { recursive: true })
    await copyFile(join(dist, 'SHA256SUMS'), join(copy, 'SHA256SUMS'))
    await writeFile(
      join(copy, 'commit.wasm'),
      policyModule(answer([{ result: ALLOW }]), ['puzzled/commit/decision']),
    )
    const swapped = makeGate(() => policySources({ shipped: copy, directory: join(dir, 'none') }))
    expect((await swapped.evaluate(makeRecord(), harmless)).deny[0]?.message).toMatch(
      /found SHA-256 .*, expected/,
    )
  })

  it('denies with no policy at all, and when the profile asks for one that is not installed', async () => {
    expect(await makeGate(async () => []).evaluate(makeRecord(), harmless)).toMatchObject({ kind: 'deny' })
    const verdict = await makeGate(shipped).evaluate(makeRecord({}, { policies: ['house'] }), harmless)
    expect(verdict).toMatchObject({ kind: 'deny' })
    expect(verdict.deny[0]?.message).toMatch(/"house".*not installed/)
  })

  it('denies when the decision cannot be recorded', async () => {
    const gate = makeGate(shipped, { record: () => Promise.reject(new Error('disk full')) })
    expect((await gate.evaluate(makeRecord(), harmless)).deny[0]?.message).toMatch(/disk full/)
  })

  it('denies more changes than anybody could judge', async () => {
    const one = harmless.changes[0]
    const many = { ...harmless, changes: Array(200_001).fill(one) }
    expect((await makeGate(shipped).evaluate(makeRecord(), many)).deny[0]?.message).toMatch(/at most 200000/)
  })
})

/** Answers the trial and every other evaluation; only what happens to the thread is wrong. */
describe('a worker that fails', () => {
  it('is late once and replaced: the next changeset is judged', async () => {
    const gate = makeGate(shipped)
    await gate.warm()
    const many = makeChangeset(Array.from({ length: 30_000 }, (_, n) => ({ path: `f${n}` })))
    const late = makeGate(shipped, { limits: { timeoutMs: 15 } })
    const verdict = await late.evaluate(makeRecord({}, { maxFiles: 1e6 }), many)
    expect(verdict).toMatchObject({ kind: 'deny' })
    expect((await gate.evaluate(makeRecord(), harmless)).kind).toBe('allow')
  })
})

describe('reload', () => {
  it('swaps the whole set at once', async () => {
    let files: string[] = []
    const gate = makeGate(() => policySources({ directory: join(dir, 'none'), files }))
    await gate.warm()
    files = [await custom('second', answer([{ result: ALLOW }]))]
    expect((await gate.reload()).map(({ name }) => name)).toEqual(['commit', 'second'])
    expect((await gate.evaluate(makeRecord(), harmless)).policies).toHaveLength(2)
  })

  it('keeps the old set in force when one file of the new one is bad, and reports it', async () => {
    let files: string[] = []
    const gate = makeGate(() => policySources({ directory: join(dir, 'none'), files }))
    await gate.warm()
    files = [await custom('good', answer([{ result: ALLOW }])), await custom('broken', { kind: 'trap' })]
    await expect(gate.reload()).rejects.toMatchObject({
      code: 'policy-invalid',
      message: expect.stringContaining('broken'),
    })
    const verdict = await gate.evaluate(makeRecord(), harmless)
    expect(verdict.kind).toBe('allow')
    expect(verdict.policies.map(({ name }) => name)).toEqual(['commit'])
  })

  it('does not fail decisions that had begun', async () => {
    const gate = makeGate(shipped)
    const verdicts = Promise.all(Array.from({ length: 20 }, () => gate.evaluate(makeRecord(), harmless)))
    await gate.reload()
    expect((await verdicts).map(({ kind, deny }) => deny[0]?.message ?? kind)).toEqual(
      Array(20).fill('allow'),
    )
  })

  it('says the digest of what is loaded', async () => {
    const file = await custom('known', answer([{ result: ALLOW }]))
    const expected = createHash('sha256')
      .update(policyModule(answer([{ result: ALLOW }]), ['house/decision']))
      .digest('hex')
    expect(await makeGate(withPolicy(file)).warm()).toContainEqual({ name: 'known', sha256: expected })
  })
})
