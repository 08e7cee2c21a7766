import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeChangeset } from '../../test/fakes/changesets.ts'
import { MemoryRecords } from '../../test/fakes/record-files.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type ActionJudgement, judgeActions, parseActionPolicy } from './action-policy.ts'
import { LimitLedger } from './limits.ts'
import { isOpen } from './window.ts'

const NOON = new Date('2026-01-07T12:00:00Z') // a Wednesday
const policy = (rules: string, head = 'default: auto') =>
  parseActionPolicy(`format: puzzled/action-policy/v1\n${head}\nrules:\n${rules || '  []'}`, 'actions.yaml')
const judge = (
  text: string,
  paths: Parameters<typeof makeChangeset>[0],
  options: { used?: number; now?: Date; head?: string } = {},
): ActionJudgement =>
  judgeActions(policy(text, options.head), makeChangeset(paths), options.now ?? NOON, () => options.used ?? 0)

describe('action policy', () => {
  it('takes the first rule that names an action, and the strictest tier of all actions', () => {
    const rules = `
  - { id: docs, targets: '/home/u/app/docs/**', tier: auto, why: documentation is free }
  - { id: deletions, kinds: delete, targets: '/**', tier: approval_required, why: deletions are looked at }
  - { id: rest, targets: '/**', tier: auto_notify, why: everything else is told }`
    expect(judge(rules, [{ path: 'docs/a.md' }]).tier).toBe('auto')
    expect(judge(rules, [{ path: 'docs/a.md', kind: 'delete' }]).tier).toBe('auto')
    expect(judge(rules, [{ path: 'docs/a.md' }, { path: 'x' }]).tier).toBe('auto_notify')
    expect(judge(rules, [{ path: 'x', kind: 'delete' }, { path: 'y' }]).tier).toBe('approval_required')
  })

  it('applies the default to what no rule names', () => {
    expect(judge('', [{ path: 'x' }], { head: 'default: forbidden' })).toMatchObject({ tier: 'forbidden' })
    expect(judge('', [], { head: 'default: forbidden' })).toMatchObject({ tier: 'auto', deny: [] })
  })

  it('compares targets without case and below what a pattern names', () => {
    const rules = `
  - { id: keys, targets: /home/u/app/keys, tier: forbidden, why: keys stay as they are }`
    for (const path of ['keys', 'keys/a', 'KEYS/a', 'ke\u200bys/a'])
      expect(judge(rules, [{ path }]).tier, path).toBe('forbidden')
    expect(judge(rules, [{ path: 'keys2/a' }]).tier).toBe('auto')
  })

  it('judges requests by method, host and path', () => {
    const rules = `
  - { id: issues, kinds: request, targets: 'POST api.example.org/issues/**', tier: auto, why: issues are free }
  - { id: other, kinds: request, targets: '**', tier: forbidden, why: nothing else leaves }`
    const request = (path: string) => ({
      id: 'r',
      method: 'POST',
      host: 'api.example.org',
      path,
      bytes: 1,
      class: 'queue',
      sha256: '',
    })
    const at = (path: string) =>
      judgeActions(policy(rules), makeChangeset([], { requests: [request(path)] }), NOON, () => 0).tier
    expect(at('/issues/1')).toBe('auto')
    expect(at('/admin')).toBe('forbidden')
  })

  it('holds beyond the rate limit, the blast radius and outside of the window', () => {
    const limit = `
  - { id: few, targets: '/**', tier: auto, limit: { commits: 2, per: 1h }, why: at most two an hour }`
    expect(judge(limit, [{ path: 'x' }], { used: 1 }).tier).toBe('auto')
    expect(judge(limit, [{ path: 'x' }], { used: 2 })).toMatchObject({
      tier: 'approval_required',
      used: ['few'],
    })
    const radius = 'default: auto\nblastRadius: { files: 2 }'
    const files = [{ path: 'a' }, { path: 'b' }, { path: 'c' }]
    expect(judge('', files.slice(0, 2), { head: radius }).tier).toBe('auto')
    expect(judge('', files, { head: radius }).hold[0]?.rule).toBe('action/blast-radius')
    const window = `
  - { id: night, targets: '/**', tier: auto, window: [{ from: '22:00', to: '04:00' }], why: only at night }`
    expect(judge(window, [{ path: 'x' }]).hold[0]?.rule).toBe('action/night/window')
    expect(judge(window, [{ path: 'x' }], { now: new Date('2026-01-07T23:00:00Z') }).hold).toEqual([])
  })

  it('protects targets whatever the rules say, and hands on the terms of approval', () => {
    const rules = `
  - { id: all, targets: '/**', tier: approval_required, quorum: 2, otherReviewer: true, expires: 1h, why: two people look }`
    const head = 'default: auto\nprotect: [{ path: /home/u/app/prod/**, why: never by an agent }]'
    const judged = judge(rules, [{ path: 'prod/db' }], { head })
    expect(judged).toMatchObject({
      tier: 'forbidden',
      obligations: ['expires:3600', 'other-reviewer', 'quorum:2'],
    })
    expect(judged.deny[0]?.rule).toBe('action/protect')
  })
})

const REFUSED: readonly [what: string, text: string, message: RegExp][] = [
  [
    'an unknown tier',
    'rules: [{ id: a, targets: /x, tier: automatic, why: some words }]',
    /actions\.yaml:3:\d+: rules\[0\]\.tier: found "automatic"/,
  ],
  [
    'an unknown kind',
    'rules: [{ id: a, kinds: [create], targets: /x, tier: auto, why: some words }]',
    /kinds/,
  ],
  [
    'an unknown key',
    'rules: []\nblastradius: {}',
    /4:1: unknown key "blastradius", did you mean "blastRadius"/,
  ],
  [
    'a limit of zero',
    'rules: [{ id: a, targets: /x, tier: auto, limit: { commits: 0, per: 1h }, why: some words }]',
    /commits: found 0, expected at least 1/,
  ],
  [
    'a limit without a time',
    'rules: [{ id: a, targets: /x, tier: auto, limit: { commits: 1 }, why: some words }]',
    /per: is missing/,
  ],
  [
    'a time that is none',
    'rules: [{ id: a, targets: /x, tier: auto, window: [{ from: "25:00", to: "04:00" }], why: some words }]',
    /from: found "25:00", expected a time of day/,
  ],
  [
    'an empty window',
    'rules: [{ id: a, targets: /x, tier: auto, window: [{ from: "04:00", to: "04:00" }], why: some words }]',
    /two different times/,
  ],
  [
    'a negative radius',
    'rules: []\nblastRadius: { files: -1 }',
    /files: found -1, expected a number of at least 0/,
  ],
  ['a rule without why', 'rules: [{ id: a, targets: /x, tier: auto }]', /why: is missing/],
  ['no default', 'rules: []', /default/],
]

describe('a malformed action policy', () => {
  it.each(REFUSED)('is refused for %s', (what, text, message) => {
    const head = what === 'no default' ? '' : 'default: auto'
    expect(() =>
      parseActionPolicy(`format: puzzled/action-policy/v1\n${head}\n${text}`, 'actions.yaml'),
    ).toThrow(message)
  })

  it('is refused or understood, whatever it is', () => {
    const part = fc.oneof(
      fc.constantFrom('default: auto', 'rules: []', 'format: puzzled/action-policy/v1', 'protect:', '  - x'),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        try {
          const read = parseActionPolicy(parts.join('\n'), 'f')
          expect(judgeActions(read, makeChangeset([{ path: 'x' }]), NOON, () => 0).tier).toBe(read.default)
        } catch (error) {
          expect(error).toBeInstanceOf(PuzzledError)
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('a maintenance window', () => {
  const night = [{ days: ['fri'], from: '22:00', to: '04:00' }] as const
  const open = (time: string) => isOpen(night as unknown as Parameters<typeof isOpen>[0], new Date(time))
  it('crosses midnight into the next day', () => {
    expect(open('2026-01-09T21:59:59Z')).toBe(false) // a Friday
    expect(open('2026-01-09T22:00:00Z')).toBe(true)
    expect(open('2026-01-10T03:59:59Z')).toBe(true)
    expect(open('2026-01-10T04:00:00Z')).toBe(false)
    expect(open('2026-01-09T03:00:00Z')).toBe(false)
  })
  it('crosses the end of the week', () => {
    const sunday = [{ days: ['sat'], from: '23:00', to: '01:00' }] as unknown as Parameters<typeof isOpen>[0]
    expect(isOpen(sunday, new Date('2026-01-11T00:30:00Z'))).toBe(true)
    expect(isOpen(sunday, new Date('2026-01-10T00:30:00Z'))).toBe(false)
  })
})

describe('limits', () => {
  it('are counted once per commit and survive a restart', async () => {
    const files = new MemoryRecords()
    let now = NOON
    const ledger = () => new LimitLedger(files, '/limits.json', () => now)
    await ledger().count(['a'], 'c1')
    await ledger().count(['a', 'b'], 'c1')
    await ledger().count(['a'], 'c2')
    expect((await ledger().read())('a', 3600)).toBe(2)
    expect((await ledger().read())('b', 3600)).toBe(1)
    now = new Date(NOON.getTime() + 3600_000)
    expect((await ledger().read())('a', 3600)).toBe(0)
    now = new Date(NOON.getTime() - 3600_000)
    expect((await ledger().read())('a', 60)).toBe(2)
  })

  it('that cannot be read are an error, not no use', async () => {
    const files = new MemoryRecords()
    for (const text of [
      '',
      '{',
      '{"version":1,"uses":[{"rule":"a","commit":"c","at":"now"}]}',
      '{"version":2,"uses":[]}',
    ]) {
      files.files.set('/limits.json', Buffer.from(text))
      await expect(new LimitLedger(files, '/limits.json', () => NOON).read()).rejects.toMatchObject({
        code: 'record-damaged',
      })
    }
  })
})
