import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ATTACKS } from '../../test/corpus/attacks.ts'
import { UNTOUCHED } from '../../test/corpus/benign.ts'
import type { Case } from '../../test/corpus/case.ts'
import { MORE_VECTOR_PATHS, VECTOR_PATHS } from '../../test/corpus/vectors.ts'
import { contentsOf, makeChangeset, makeRecord, type ShortChange } from '../../test/fakes/changesets.ts'
import type { Verdict } from '../contract/verdict.ts'
import { packageRoot } from '../lib/assets.ts'
import { PolicyGate } from './gate.ts'
import { gateInputSchema } from './gate-schema.ts'
import { policySources } from './policy-set.ts'

/** The shipped policy, as compiled, judged on the corpus. Contents come from the case that is being judged. */
let contents = contentsOf([])
let document: Uint8Array | null = null
const gate = new PolicyGate({
  sources: () => policySources({ directory: join(packageRoot(), 'no-such-folder') }),
  contents: (...asked) => contents(...asked),
  limits: { workers: 1, timeoutMs: 20_000 },
  record: async ({ input }) => {
    document = input
  },
})
afterAll(() => gate.close())

const baseOf = makeRecord().exit

async function judge({
  changes,
  bases,
  requests,
  gate: settings,
  exit,
}: Omit<Case, 'name' | 'verdict'>): Promise<Verdict> {
  contents = contentsOf(changes)
  const changeset = makeChangeset(changes, {
    ...(bases === undefined ? {} : { bases }),
    ...(requests === undefined ? {} : { requests }),
  })
  const record = makeRecord(
    exit === undefined || baseOf === null ? {} : { exit: { ...baseOf, ...exit } },
    settings,
  )
  const verdict = await gate.evaluate(record, changeset)
  // Policy authors are promised the schema: every document of the corpus keeps to it.
  const input: unknown = JSON.parse(Buffer.from(document ?? []).toString('utf8'))
  expect(gateInputSchema.safeParse(input).error?.issues ?? []).toEqual([])
  return verdict
}

const rulesOf = ({ deny, hold, warn }: Verdict): string[] => [
  ...new Set([...deny, ...hold, ...warn].map(({ rule }) => rule)),
]
const reasons = ({ deny, hold }: Verdict): string[] =>
  [...deny, ...hold].map(({ rule, message, path }) => `${rule} ${path}: ${message}`)

describe('ordinary work passes untouched', () => {
  it.each(UNTOUCHED)('$name', async (each) => {
    const verdict = await judge(each)
    expect(reasons(verdict)).toEqual([])
    expect(verdict.kind).toBe('allow')
    expect(rulesOf(verdict).sort()).toEqual([...(each.rules ?? [])].sort())
  })

  it('is a corpus of more than fifty changesets', () => expect(UNTOUCHED.length).toBeGreaterThanOrEqual(50))
})

describe('what must not pass does not', () => {
  it.each(ATTACKS)('$name', async (each) => {
    const verdict = await judge(each)
    expect(verdict.kind).toBe(each.verdict)
    expect(rulesOf(verdict)).toEqual(expect.arrayContaining([...(each.rules ?? [])]))
  })
})

interface CatalogueEntry {
  severity: string
}
const catalogue: Record<string, CatalogueEntry> = JSON.parse(
  readFileSync(join(packageRoot(), 'policies/dist/vectors.json'), 'utf8'),
)
const all = [...Object.entries(VECTOR_PATHS), ...MORE_VECTOR_PATHS]

/** An absolute path is judged below a base of its first component, as `/etc` would be forked. */
const place = (path: string): { bases: string[]; path: string } => {
  const [, first, rest] = /^\/([^/]+)\/(.*)$/.exec(path) ?? []
  return first === undefined || rest === undefined
    ? { bases: ['/home/u/app'], path }
    : { bases: [`/${first}`], path: rest }
}

/** Bad for every scanner that knows the format: a clean content would make some entries harmless. */
const content = '* filter=x\n'

/** The ways in which a file comes to be where it is. */
const WAYS: Readonly<Record<string, (path: string) => ShortChange[]>> = {
  created: (path) => [{ path, content }],
  modified: (path) => [{ kind: 'modify', path, content, old: 'y' }],
  'renamed into place': (path) => [
    { kind: 'delete', path: 'harmless.txt' },
    { path, content },
  ],
  'put there as a link': (path) => [
    { path, link: 'harmless.txt' },
    { path: 'harmless.txt', content },
  ],
  'written in another case': (path) => [{ path: path.toUpperCase(), content }],
  'written with an invisible character': (path) => [{ path: path.replace(/(.)(.)$/, '$1\u2060$2'), content }],
}

describe('the catalogue', () => {
  it('has a fixture for every entry, and no fixture without one', () => {
    expect(Object.keys(VECTOR_PATHS).sort()).toEqual(Object.keys(catalogue).sort())
    expect(all.length).toBeGreaterThanOrEqual(60)
  })

  describe.each(Object.keys(WAYS))('finds what is %s', (way) => {
    it.each(all)('%s: %s', async (id, path) => {
      const { bases, path: relative } = place(path)
      const verdict = await judge({ changes: WAYS[way]?.(relative) ?? [], bases })
      expect(rulesOf(verdict)).toContain(`vector/${id}`)
      const severity = catalogue[id]?.severity
      if (severity === 'critical') expect(verdict.kind).toBe('deny')
      if (severity === 'high' || severity === 'medium') expect(verdict.kind).not.toBe('allow')
    })
  })
})
