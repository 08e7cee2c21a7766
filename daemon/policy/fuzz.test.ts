import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { contentsOf, makeChangeset, makeRecord, type ShortChange } from '../../test/fakes/changesets.ts'
import { packageRoot } from '../lib/assets.ts'
import { scanContent } from './content-scan.ts'
import { fold } from './fold.ts'
import { PolicyGate } from './gate.ts'
import { gateInput } from './gate-input.ts'
import { policySources } from './policy-set.ts'
import { combineVerdict, decisionSchema, type PolicyResult } from './verdict.ts'

const policy = { name: 'p', sha256: 'a'.repeat(64) }
const facts = { digest: 'd', durationMs: 0, shadow: false }
const shipped = () => policySources({ directory: join(packageRoot(), 'no-such-folder') })

const gate = new PolicyGate({ sources: shipped, contents: null, limits: { workers: 1, timeoutMs: 20_000 } })
afterAll(() => gate.close())

const name = fc.oneof(
  fc.constantFrom(
    '.git',
    'hooks',
    'pre-commit',
    'config',
    '.bashrc',
    'src',
    'a.ts',
    '__proto__',
    'constructor',
    'CLAUDE.md',
  ),
  fc.string({ minLength: 1, maxLength: 12, unit: 'binary' }).filter((text) => !text.includes('/')),
)
const path = fc.oneof(
  fc.array(name, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/')),
  fc.uint8Array({ minLength: 1, maxLength: 20 }),
)
const change: fc.Arbitrary<ShortChange> = fc.record(
  {
    kind: fc.constantFrom('add', 'modify', 'delete', 'metadata', 'replace'),
    path,
    mode: fc.nat(0o7777),
    oldMode: fc.nat(0o7777),
    link: fc.string({ unit: 'binary' }),
    dir: fc.boolean(),
    uid: fc.nat(70_000),
    size: fc.nat(),
    content: fc.string(),
  },
  { requiredKeys: ['kind', 'path'] },
)

describe('arbitrary results of a policy', () => {
  it('are never an allow', () => {
    const garbage = fc.oneof(fc.anything(), fc.jsonValue(), fc.array(fc.record({ result: fc.anything() })))
    fc.assert(
      fc.property(garbage, (output) => {
        expect(combineVerdict([{ policy, output }], facts).kind).toBe('deny')
      }),
      { numRuns: 2_000 },
    )
  })

  it('that are a decision with one thing changed are an allow only when they still are one', () => {
    const good: Record<string, unknown> = {
      version: 1,
      allow: true,
      deny: [],
      hold: [],
      warn: [],
      tier: 'auto',
      obligations: [],
    }
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(good), 'extra'),
        fc.oneof(fc.anything(), fc.constant(undefined)),
        (key, value) => {
          const result = { ...good, [key]: value }
          const { kind } = combineVerdict([{ policy, output: [{ result }] }], facts)
          if (kind === 'allow') expect(decisionSchema.safeParse(result).success).toBe(true)
          if (kind === 'allow') expect(result).toMatchObject({ allow: true, deny: [], hold: [] })
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('next to a good one deny all the same', () => {
    const good: PolicyResult = {
      policy,
      output: [
        { result: { version: 1, allow: true, deny: [], hold: [], warn: [], tier: 'auto', obligations: [] } },
      ],
    }
    expect(combineVerdict([good], facts).kind).toBe('allow')
    fc.assert(
      fc.property(fc.anything(), fc.boolean(), (output, first) => {
        const bad: PolicyResult = { policy, output }
        expect(combineVerdict(first ? [bad, good] : [good, bad], facts).kind).toBe('deny')
      }),
    )
  })
})

describe('arbitrary changesets', () => {
  it('make a well-formed document whose index belongs to it', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
        const text = Buffer.from(
          gateInput(makeRecord(), makeChangeset(changes), { now: new Date(0), scans: null }),
        ).toString()
        const document = JSON.parse(text)
        expect(document.changes).toHaveLength(changes.length)
        expect(document.index.count).toBe(changes.length)
        for (const places of Object.values<[number, number][]>(document.index.names))
          for (const [at, directory] of places) {
            expect(document.changes[at]).toBeDefined()
            expect(document.index.directories[directory]).toBeDefined()
          }
      }),
    )
  })

  it('get a verdict, and never an allow with setuid, a finding, or a hook', async () => {
    const bad: fc.Arbitrary<ShortChange> = fc.constantFrom<ShortChange>(
      { path: 'x/setuid', mode: 0o4755 },
      { path: 'x/device', findings: [{ rule: 'device', message: 'a device' }] },
      { path: '.git/hooks/post-merge' },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 10 }), bad, fc.nat(10), async (changes, worst, at) => {
        const all = [...changes.slice(0, at), worst, ...changes.slice(at)]
        const verdict = await gate.evaluate(makeRecord(), makeChangeset(all))
        expect(verdict.kind).not.toBe('allow')
        expect(verdict.deny.map(({ rule }) => rule)).not.toContain('policy-failed')
      }),
      { numRuns: 150 },
    )
  })
})

describe('arbitrary contents', () => {
  const names = [
    'a.ts',
    'package.json',
    'package-lock.json',
    '.git/config',
    '.gitattributes',
    'yarn.lock',
    'a.bin',
  ]
  it('are examined without a failure', () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
      fc.json().map((text) => Buffer.from(text)),
    )
    fc.assert(
      fc.property(fc.constantFrom(...names), content, fc.option(content), (file, bytes, old) => {
        const scan = scanContent(Buffer.from(file), bytes, {
          complete: true,
          ...(old === null ? {} : { old }),
        })
        expect(scan.examined).toBe(true)
        if (old !== null && Buffer.compare(Buffer.from(old), Buffer.from(bytes)) === 0)
          expect(scan.findings).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })

  it('that exhaust the heap of a worker end in deny, and the next changeset is judged', async () => {
    const greedy = Buffer.from(`{"scripts":{},"x":[${'[],'.repeat(340_000)}0]}`)
    const changes = Array.from(
      { length: 4 },
      (_, n): ShortChange => ({ path: `${n}/package.json`, content: greedy }),
    )
    let current: readonly ShortChange[] = changes
    const small = new PolicyGate({
      sources: shipped,
      contents: (...asked) => contentsOf(current)(...asked),
      limits: { workers: 1, timeoutMs: 20_000, heapBytes: 12 * 1024 * 1024 },
    })
    const verdict = await small.evaluate(makeRecord(), makeChangeset(changes))
    expect(verdict.kind).toBe('deny')
    expect(verdict.deny[0]?.message).toMatch(/memory|ended/)
    current = [{ path: 'a.ts', content: 'x' }]
    expect((await small.evaluate(makeRecord(), makeChangeset(current))).kind).toBe('allow')
    await small.close()
  })
})

describe('folding', () => {
  it('is stable, and the same for every spelling', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(fold(fold(text))).toBe(fold(text))
        expect(fold(text.normalize('NFD'))).toBe(fold(text.normalize('NFC')))
      }),
      { numRuns: 1_000 },
    )
    for (const spelling of [
      '.GIT',
      '.ｇｉｔ',
      '.g\u200dit',
      '.gi\u00adt',
      '.\ufeffgit',
      '.G\u0131T',
      '.gi\ufe0ft',
    ])
      expect(fold(spelling), JSON.stringify(spelling)).toBe('.git')
    expect(fold('maKe\u017file')).toBe('makesile')
    expect(fold('gro\u1e9e')).toBe('gross')
    expect(fold('\u212aubeconfig')).toBe('kubeconfig')
  })
})
