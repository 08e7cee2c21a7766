import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { makeChangeset, makeRecord } from '../../test/fakes/changesets.ts'
import { policyModule } from '../../test/fakes/policy-module.ts'
import { MemoryRecords } from '../../test/fakes/record-files.ts'
import { ActionJudge } from './action-judge.ts'
import { DecisionLog } from './decision-log.ts'
import { PolicyGate } from './gate.ts'
import { LimitLedger } from './limits.ts'
import { policySources } from './policy-set.ts'
import { type Replayed, replay } from './replay.ts'

const dir = await mkdtemp(join(tmpdir(), 'puzzled-decisions-'))
afterAll(() => rm(dir, { recursive: true }))

const record = makeRecord()
const hook = makeChangeset([{ path: '.git/hooks/pre-commit' }])
const plain = makeChangeset([{ path: 'src/a.ts' }])

function logged(files = new MemoryRecords()) {
  const log = new DecisionLog(files, '/policy')
  const gate = new PolicyGate({
    sources: () => policySources({ directory: join(dir, 'none') }),
    contents: null,
    limits: { workers: 1 },
    now: () => new Date('2026-01-01T00:00:00Z'),
    record: (decision) => log.record(decision),
  })
  return { files, log, gate }
}

describe('the decision log', () => {
  it('keeps every decision with its input, and replays them', async () => {
    const { log, gate } = logged()
    await gate.evaluate(record, hook)
    await gate.evaluate(record, plain)
    const lines = await log.since(new Date(0))
    expect(lines.map(({ verdict }) => verdict)).toEqual(['hold', 'allow'])
    expect(lines[0]?.findings[0]).toMatchObject({ rule: 'vector/git-hook', severity: 'high' })
    const rows: Replayed[] = []
    for await (const row of replay(log, new Date(0), (input, facts) => gate.evaluateInput(input, facts)))
      rows.push(row)
    expect(rows.map(({ was, now }) => [was, now])).toEqual([
      ['hold', 'hold'],
      ['allow', 'allow'],
    ])
    expect(rows.flatMap(({ appeared, vanished }) => [...appeared, ...vanished])).toEqual([])
    await gate.close()
  })

  it('lists what another policy would flip', async () => {
    const { log, gate } = logged()
    await gate.evaluate(record, plain)
    await gate.close()
    const file = join(dir, 'strict.wasm')
    const finding = { rule: 'house/never', severity: 'critical', message: 'never' }
    const text = JSON.stringify([
      {
        result: {
          version: 1,
          allow: false,
          deny: [finding],
          hold: [],
          warn: [],
          tier: 'forbidden',
          obligations: [],
        },
      },
    ])
    await writeFile(file, policyModule({ kind: 'answer', text }, ['house/decision']))
    const strict = new PolicyGate({
      sources: () => policySources({ directory: join(dir, 'none'), files: [file] }),
      contents: null,
      limits: { workers: 1 },
    })
    const rows: Replayed[] = []
    for await (const row of replay(log, new Date(0), (input, facts) => strict.evaluateInput(input, facts)))
      rows.push(row)
    expect(rows).toMatchObject([{ was: 'allow', now: 'deny', appeared: ['house/never'] }])
    await strict.close()
  })

  it('takes a torn last line as absent and any other damage as damage', async () => {
    const { files, log, gate } = logged()
    await gate.evaluate(record, plain)
    await gate.close()
    const whole = files.files.get('/policy/decisions.jsonl') ?? Buffer.alloc(0)
    files.files.set('/policy/decisions.jsonl', Buffer.concat([whole, Buffer.from('{"version":1,"at"')]))
    expect(await log.since(new Date(0))).toHaveLength(1)
    files.files.set('/policy/decisions.jsonl', Buffer.concat([Buffer.from('{}\n'), whole]))
    await expect(log.since(new Date(0))).rejects.toMatchObject({ code: 'record-damaged' })
  })

  it('is written or nothing is allowed', async () => {
    const files = new MemoryRecords()
    files.failWrites = true
    const { gate } = logged(files)
    expect(await gate.evaluate(record, plain)).toMatchObject({ kind: 'deny' })
    await gate.close()
  })
})

describe('the action policy at the gate', () => {
  const ledger = new LimitLedger(new MemoryRecords(), '/limits', () => new Date('2026-01-01T00:00:00Z'))
  const gateWith = (file: string) => {
    const judge = new ActionJudge(file, ledger, () => new Date('2026-01-01T00:00:00Z'))
    return {
      judge,
      gate: new PolicyGate({
        sources: () => policySources({ directory: join(dir, 'none') }),
        contents: null,
        limits: { workers: 1 },
        judge: (verdict, branch, changeset) => judge.judge(verdict, branch, changeset),
      }),
    }
  }

  it('makes a verdict stricter and is part of the policy version', async () => {
    const file = join(dir, 'actions.yaml')
    await writeFile(
      file,
      `format: puzzled/action-policy/v1\ndefault: auto\nrules:\n  - { id: once, targets: '/home/u/app/src/**', tier: auto, limit: { commits: 1, per: 1d }, why: one a day }\n`,
    )
    const { gate, judge } = gateWith(file)
    const first = await gate.evaluate(record, plain)
    expect(first.kind).toBe('allow')
    expect(first.policies.map(({ name }) => name)).toEqual(['commit', 'actions'])
    await judge.consume(plain, 'c1')
    await judge.consume(plain, 'c1')
    const second = await gate.evaluate(record, plain)
    expect(second).toMatchObject({ kind: 'hold', tier: 'approval_required' })
    expect(second.hold[0]?.rule).toBe('action/once/limit')
    await gate.close()
  })

  it('denies everything while it is malformed, and keeps what was in force over a bad reload', async () => {
    const bad = join(dir, 'bad.yaml')
    await writeFile(bad, 'format: puzzled/action-policy/v1\ndefault: sometimes\nrules: []\n')
    const { gate } = gateWith(bad)
    const verdict = await gate.evaluate(record, plain)
    expect(verdict.kind).toBe('deny')
    expect(verdict.deny[0]?.message).toMatch(/bad\.yaml:2:10: default: found "sometimes"/)
    await gate.close()
    const file = join(dir, 'reload.yaml')
    await writeFile(file, 'format: puzzled/action-policy/v1\ndefault: approval_required\nrules: []\n')
    const second = gateWith(file)
    expect((await second.gate.evaluate(record, plain)).kind).toBe('hold')
    await writeFile(file, 'default: auto\n')
    await expect(second.judge.reload()).rejects.toMatchObject({ code: 'policy-invalid' })
    expect((await second.gate.evaluate(record, plain)).kind).toBe('hold')
    await second.gate.close()
  })
})
