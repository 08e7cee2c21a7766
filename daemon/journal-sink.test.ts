import { expect, it } from 'vitest'
import { fieldsOf, type JournalFields, JournalSink } from './journal-sink.ts'

const time = '2026-01-01T00:00:00.000Z'
const denial = { kind: 'denial', branch: 'b1', time, layer: 'proxy', rule: 'no-rule', message: 'no' } as const

it('says who, what and where in fields of their own', () => {
  expect(fieldsOf('denial', 'b1', { ...denial, subject: 'GET http://x/\nPUZZLED_BRANCH=other' })).toEqual({
    MESSAGE: 'denial b1 proxy GET http://x/\nPUZZLED_BRANCH=other no',
    PRIORITY: '5',
    SYSLOG_IDENTIFIER: 'puzzled',
    PUZZLED_KIND: 'denial',
    PUZZLED_BRANCH: 'b1',
    PUZZLED_LAYER: 'proxy',
    PUZZLED_RULE: 'no-rule',
    PUZZLED_SUBJECT: 'GET http://x/\nPUZZLED_BRANCH=other',
    PUZZLED_MESSAGE: 'no',
    PUZZLED_TIME: time,
  })
})

it('never lets a fact replace the branch or a field of the journal itself', () => {
  const fields = fieldsOf('x', 'b1', { branch: 'b2', kind: 'y', bytes: 3n, maxRssBytes: 1, 'A=B': 'z' })
  expect(fields).toMatchObject({
    PUZZLED_BRANCH: 'b1',
    PUZZLED_KIND: 'x',
    PUZZLED_BYTES: '"3"',
    PUZZLED_MAX_RSS_BYTES: '1',
  })
  expect(Object.keys(fields).every((name) => /^[A-Z][A-Z0-9_]*$/.test(name))).toBe(true)
})

it('keeps the order, waits for nobody, and tells how many were lost', async () => {
  const sent: JournalFields[] = []
  let fail = true
  const sink = new JournalSink(async (fields) => {
    await new Promise((resolve) => setImmediate(resolve))
    if (fail) throw new Error('no journal')
    sent.push(fields)
  })
  sink.audit(0, 'start', 'b1', {})
  await sink.flush()
  fail = false
  for (let seq = 1; seq <= 2_500; seq++) sink.audit(seq, 'test', 'b1', { seq })
  sink.take({ ...denial, subject: 's' })
  await sink.flush()
  const numbers = sent.map(({ PUZZLED_SEQ }) => Number(PUZZLED_SEQ))
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
  const lost = sent.reduce((all, { PUZZLED_LOST }) => all + Number(PUZZLED_LOST ?? 0), 0)
  expect(sent.length + lost).toBe(1 + 2_500 + 1)
})

it('is not there where no journal listens', () => {
  expect(JournalSink.find('/nonexistent/socket')).toBeNull()
})
