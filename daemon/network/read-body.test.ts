import { describe, expect, it } from 'vitest'
import { hasRepeatedKey, isReadBody } from './read-body.ts'

const graphql = (query: unknown, more: object = {}): boolean =>
  isReadBody('graphql', Buffer.from(JSON.stringify({ query, ...more })), [])

describe('GraphQL', () => {
  it.each([
    '{ me { name } }',
    'query { me }',
    'query Q($a: In = {x: 1}) @d(a: {b: 2}) { me(x: $a) { ...F } } fragment F on User { id }',
    '# mutation { drop }\n{ me }',
    '{ me(note: "mutation { drop }", long: """ } mutation { " """) }',
    'query mutation { mutation }',
  ])('%s is a read', (query) => expect(graphql(query)).toBe(true))

  it.each([
    'mutation { drop }',
    'subscription { all }',
    '{ me } mutation M { drop }',
    'query Q { me } mutation M { drop }',
    'fragment F on User { id } mutation { drop }',
    '# comment\u2028mutation { drop }',
    '{ me }} mutation { drop',
    '{ me(x: "unclosed) }',
    '{ me ',
    '',
    'type Mutation { x: Int }',
    '{ me } \u00e9',
  ])('%s is a write', (query) => expect(graphql(query)).toBe(false))

  it('knows every operation of a batch and no persisted ones', () => {
    const body = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
    expect(isReadBody('graphql', body([{ query: '{a}' }, { query: '{b}' }]), [])).toBe(true)
    expect(isReadBody('graphql', body([{ query: '{a}' }, { query: 'mutation{b}' }]), [])).toBe(false)
    expect(graphql('{a}', { extensions: { persistedQuery: { sha256Hash: 'x' } } })).toBe(false)
    expect(graphql(undefined, { id: 'x' })).toBe(false)
    expect(isReadBody('graphql', body([]), [])).toBe(false)
  })

  it('takes nothing that two parsers could read differently', () => {
    for (const text of [
      '{"query":"{a}","query":"mutation{b}"}',
      '{"query":"{a}","Query":"mutation{b}"}',
      '{"query":"{a}","\\u0071uery":"mutation{b}"}',
      '\ufeff{"query":"{a}"}',
      '{"query":"{a}"} x',
    ])
      expect(isReadBody('graphql', Buffer.from(text), []), text).toBe(false)
    expect(isReadBody('graphql', Buffer.from([0x7b, 0xff, 0x7d]), [])).toBe(false)
  })
})

describe('JSON-RPC', () => {
  const read = (value: unknown, globs: readonly string[] = ['eth_get*', 'tools/list']): boolean =>
    isReadBody('json-rpc', Buffer.from(JSON.stringify(value)), globs)
  it('reads the methods that the rule lists and no others', () => {
    expect(read({ method: 'eth_getBalance' })).toBe(true)
    expect(read([{ method: 'eth_getBalance' }, { method: 'tools/list' }])).toBe(true)
    expect(read({ method: 'eth_send' })).toBe(false)
    expect(read([{ method: 'eth_getBalance' }, { method: 'eth_send' }])).toBe(false)
    expect(read({ method: 'eth_getBalance' }, [])).toBe(false)
    expect(read({ method: ['eth_getBalance'] })).toBe(false)
  })
})

describe('repeated keys', () => {
  it('are found in one object, not across objects', () => {
    expect(hasRepeatedKey('{"a":{"a":1},"b":[{"a":1},{"a":2}]}')).toBe(false)
    expect(hasRepeatedKey('{"a":"a","b":"a"}')).toBe(false)
    expect(hasRepeatedKey('{"x":{"a":1,"b":2,"A":3}}')).toBe(true)
  })
})
