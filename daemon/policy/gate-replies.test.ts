import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Question, readReply } from './gate-replies.ts'

const evaluate: Question = { kind: 'evaluate', id: 7, answers: 1 }
const scan: Question = { kind: 'scan', id: 7, answers: 1 }
const clean = { examined: true, binary: false, native: false, findings: [] }
const said = (value: unknown): string => JSON.stringify(value)

describe('what a policy worker says', () => {
  it('is taken when it answers what was asked', () => {
    const answered = { kind: 'evaluated', id: 7, results: [{ output: [] }] }
    expect(readReply(said(answered), evaluate)).toEqual(answered)
    const scanned = { kind: 'scanned', id: 7, scans: [{ ...clean, findings: [{ rule: 'r', message: 'm' }] }] }
    expect(readReply(said(scanned), scan)).toEqual(scanned)
    expect(readReply('{"kind":"ready"}', { kind: 'start' })).toEqual({ kind: 'ready' })
  })

  const REFUSED: readonly [what: string, text: string, question: Question | null, reason: RegExp][] = [
    ['no JSON', 'ready', { kind: 'start' }, /no JSON/],
    ['no object', '[]', evaluate, /malformed/],
    ['an unknown kind', '{"kind":"exec"}', evaluate, /malformed at "kind"/],
    ['an unknown key', said({ kind: 'evaluated', id: 7, results: [], run: 'x' }), evaluate, /malformed/],
    [
      'a key named __proto__',
      '{"kind":"evaluated","id":7,"results":[{"output":1,"__proto__":{"a":1}}]}',
      evaluate,
      /malformed/,
    ],
    ['something that nobody asked', '{"kind":"ready"}', null, /nobody asked/],
    ['ready again', '{"kind":"ready"}', evaluate, /in place of an answer/],
    [
      'an answer too early',
      said({ kind: 'scanned', id: 7, scans: [] }),
      { kind: 'start' },
      /before it was ready/,
    ],
    ['another answer', said({ kind: 'scanned', id: 7, scans: [clean] }), evaluate, /"scanned" as the answer/],
    [
      'another question',
      said({ kind: 'evaluated', id: 8, results: [{ output: 1 }] }),
      evaluate,
      /question 8/,
    ],
    ['too few answers', said({ kind: 'evaluated', id: 7, results: [] }), evaluate, /0 answers, asked were 1/],
    ['too many', said({ kind: 'scanned', id: 7, scans: [clean, clean] }), scan, /2 answers/],
    [
      'output and failure',
      said({ kind: 'evaluated', id: 7, results: [{ output: 1, failure: '' }] }),
      evaluate,
      /results/,
    ],
    [
      'a word for a truth',
      said({ kind: 'scanned', id: 7, scans: [{ ...clean, examined: 'yes' }] }),
      scan,
      /examined/,
    ],
    [
      'a finding for nobody',
      said({
        kind: 'scanned',
        id: 7,
        scans: [{ ...clean, findings: Array(21).fill({ rule: 'r', message: '' }) }],
      }),
      scan,
      /findings/,
    ],
    ['a number that is none', '{"kind":"evaluated","id":1e99,"results":[]}', evaluate, /malformed at "id"/],
  ]
  it.each(REFUSED)('is refused by its name when it is %s', (_what, text, question, reason) => {
    expect(() => readReply(text, question)).toThrow(reason)
  })

  it('is an answer or a refusal, whatever it is', () => {
    const near = fc.record(
      {
        kind: fc.constantFrom('evaluated', 'scanned', 'ready', 'unfit', '', null),
        id: fc.constantFrom(7, 8, -1, 0.5, '7'),
        results: fc.oneof(fc.jsonValue(), fc.constant([{ output: 1 }]), fc.constant([{ failure: 'x' }])),
        scans: fc.oneof(fc.jsonValue(), fc.constant([clean])),
        reason: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    const texts = fc.oneof(fc.string(), fc.json(), near.map(said))
    fc.assert(
      fc.property(texts, fc.constantFrom(evaluate, scan), (text, question) => {
        try {
          const reply = readReply(text, question)
          expect(reply).toMatchObject({ id: 7 })
          expect(reply.kind).toBe(question.kind === 'scan' ? 'scanned' : 'evaluated')
        } catch (error) {
          expect(error).toBeInstanceOf(Error)
        }
      }),
      { numRuns: 2000 },
    )
  })
})
