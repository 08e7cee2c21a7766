import { describe, expect, it } from 'vitest'
import { plain } from './paint.ts'
import { type TracedRecord, traceTable } from './trace.ts'
import { cellWidth } from './width.ts'

const DIGEST = '8c6771bd2b859e350a7562511c0863e265eb446fcc3ed97250ab9ef58f933f1a'
let seq = 0
const record = (kind: string, facts: TracedRecord['facts']): TracedRecord => ({
  ...{
    seq: seq++,
    prev: '0'.repeat(64),
    time: '2026-11-21T17:58:41.751Z',
    kind,
    branch: 't5sgvvrcdj',
    facts,
  },
})
const change = (name: string) => ({ path: `/p/${name}`, kind: 'add', sha256: DIGEST })
const RECORDS = [
  record('fork', {
    name: 'fix',
    profile: 'standard',
    parent: null,
    bases: ['/p'],
    requester: 0,
    command: ['a', 'b'],
  }),
  record('exit', { code: 0, signal: null, cause: 'exited', maxRssBytes: 1, own: true }),
  record('exit', { code: null, signal: 'SIGKILL', cause: 'timeout', own: false }),
  record('verdict', { digest: DIGEST, verdict: 'hold', policies: [{ name: 'commit', sha256: DIGEST }] }),
  record('approve', { digest: DIGEST, by: 1000, why: '' }),
  record('commit-paths', { commit: 'c1', paths: ['a', 'b', 'c', 'd', 'e'].map(change) }),
  record('reverted', { by: 'c2', first: true }),
]
const nameOf = (uid: number): string | undefined => (uid === 0 ? 'root' : undefined)
const shown = (records: readonly TracedRecord[], width?: number): string[] =>
  traceTable(records, nameOf, plain, width).trimEnd().split('\n')

describe('what is on record about a branch', () => {
  it('is a table: when, what, who, and what else', () =>
    expect(shown(RECORDS)).toEqual([
      'RECORD  TIME                  WHAT          WHO       DETAILS',
      '0       2026-11-21T17:58:41Z  fork          root      name fix, profile standard, bases /p, command a b',
      '1       2026-11-21T17:58:41Z  exit          -         status 0',
      '2       2026-11-21T17:58:41Z  exit          -         signal SIGKILL, timeout, a further command',
      '3       2026-11-21T17:58:41Z  verdict       -         digest 8c6771bd2b85, verdict hold, policies commit',
      '4       2026-11-21T17:58:41Z  approve       uid 1000  digest 8c6771bd2b85',
      '5       2026-11-21T17:58:41Z  commit-paths  -         commit c1, paths /p/a (add), /p/b (add), /p/c (add) and 2 more',
      '6       2026-11-21T17:58:41Z  reverted      -         by c2, first',
    ]))

  it('stays within 80 columns and goes on below its own', () => {
    const lines = shown(RECORDS, 80)
    expect(Math.max(...lines.map(cellWidth))).toBeLessThanOrEqual(80)
    expect(lines.some((line) => /^ {54}\S/.test(line))).toBe(true)
  })

  it('never moves the cursor of whoever reads it, whatever an agent was called', () => {
    const hostile = '\u001b[2J\n9  2026  approve  root'
    const lines = shown([
      record('fork', { name: hostile, command: [hostile], requester: 7, [hostile]: hostile }),
      { ...record(hostile, {}), time: hostile },
    ])
    expect(lines).toHaveLength(3)
    expect(lines.join('')).not.toMatch(/[\x00-\x1f\x7f-\x9f]/)
  })
})
