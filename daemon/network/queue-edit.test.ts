import { describe, expect, it } from 'vitest'
import { network, rule } from '../../test/fixtures/network-rules.ts'
import type { QueueEdit } from '../contract/engine.ts'
import { Credential } from './credentials.ts'
import { netTest } from './net-test.ts'
import { editedRequest, refuseSecrets } from './queue-edit.ts'
import type { StoredRequest } from './queue-record.ts'
import { compileRules } from './request-rule.ts'

const PROFILE = network([
  rule('admin', { paths: ['/admin/**'], class: 'deny' }),
  rule('write', { methods: ['POST', 'PUT'], class: 'queue' }),
  rule('read'),
])
const KNOWN: StoredRequest = {
  method: 'POST',
  scheme: 'https',
  host: 'api.example.com',
  port: 443,
  target: '/issues?x=1',
  headers: [
    ['content-type', 'application/json'],
    ['accept', 'a'],
    ['accept', 'b'],
    ['idempotency-key', 'puzzled-r1'],
  ],
  rule: 'write',
  body: { size: 2, sha256: 'x', inline: 'e30=' },
}
const edit = (change: QueueEdit) => editedRequest(KNOWN, change, compileRules(PROFILE))

describe('an edited request', () => {
  it('is the same but for what was named', () => {
    const { body: _, ...same } = KNOWN
    expect(edit({})).toEqual(same)
    expect(edit({ url: 'https://api.example.com/notes' })).toEqual({ ...same, target: '/notes' })
    expect(edit({ method: 'PUT' })).toEqual({ ...same, method: 'PUT' })
  })

  it('keeps the order of its headers, and takes away what has no value', () => {
    const headers = [
      { name: 'Accept', values: ['c'] },
      { name: 'content-type', values: [] },
      { name: 'etag', values: [] },
      { name: 'if-match', values: ['"1"'] },
    ]
    expect(() => edit({ headers })).toThrow('no header "etag"')
    expect(edit({ headers: headers.filter(({ name }) => name !== 'etag') }).headers).toEqual([
      ['accept', 'c'],
      ['idempotency-key', 'puzzled-r1'],
      ['if-match', '"1"'],
    ])
  })

  it.each([
    [{ url: 'https://elsewhere.example.org/' }, 'no-rule'],
    [{ url: 'https://api.example.com/admin/x' }, 'admin'],
    [{ method: 'GET' }, 'read'],
    [{ headers: [{ name: 'x-http-method-override', values: ['DELETE'] }] }, 'read'],
  ] as const)('%o would not be queued: the rule is named', (change, by) => {
    const problem = (() => {
      try {
        edit(change)
      } catch (error) {
        return error as { code: string; hint: string }
      }
      return undefined
    })()
    expect([problem?.code, problem?.hint]).toEqual(['denied', expect.stringContaining(`Rule "${by}"`)])
  })

  it.each([
    [{ method: 'post' }, 'upper case'],
    [{ url: 'https://api.example.com@evil.test/' }, 'no host'],
    [{ url: 'https://api.example.com/a/../admin/' }, 'dot-segment'],
    [{ url: '/issues' }, 'no host'],
    [{ headers: [{ name: 'a b', values: ['c'] }] }, 'no name of a header'],
    [{ headers: [{ name: 'accept', values: ['a\r\nhost: b'] }] }, 'control character'],
    [{ headers: [{ name: 'accept', values: ['\u{1f600}'] }] }, 'control character'],
    [{ headers: [{ name: 'content-length', values: ['9'] }] }, 'follows from the body'],
    [{ headers: [{ name: 'transfer-encoding', values: ['chunked'] }] }, 'no header'],
    [{ headers: [{ name: 'host', values: ['evil.test'] }] }, 'no header'],
    [{ headers: [{ name: 'x-secret-channel', values: ['1'] }] }, 'no header'],
    [{ headers: [{ name: 'idempotency-key', values: [] }] }, 'exactly one'],
    [{ headers: [{ name: 'accept', values: ['a'.repeat(70_000)] }] }, 'too large'],
  ] as const)('%o is refused', (change, message) => {
    expect(() => edit(change)).toThrow(message)
  })

  it('never holds a secret in any spelling: the placeholder belongs there', () => {
    const secret = new Credential(
      {
        placeholder: 'PUZZLED-TOKEN-1',
        source: { kind: 'environment', name: 'T' },
        hosts: ['api.example.com'],
        header: 'authorization',
        why: 'x',
      },
      's3cret-value',
    )
    const header = (value: string) => ({ headers: [{ name: 'authorization', values: [value] }] })
    expect(() => refuseSecrets(header('Bearer PUZZLED-TOKEN-1'), [secret])).not.toThrow()
    expect(() => refuseSecrets(header('Bearer s3cret-value'), [secret])).toThrow('placeholder')
    expect(() => refuseSecrets({ url: `https://a.test/?k=${btoa('s3cret-value')}` }, [secret])).toThrow()
    expect(() => refuseSecrets({ body: Buffer.from('{"k":"s3cret-value"}') }, [secret])).toThrow()
  })
})

describe('net test', () => {
  it.each([
    ['POST', 'https://api.example.com/issues', 'queue', 'write'],
    ['post', 'https://api.example.com/issues#top', 'queue', 'write'],
    ['GET', 'https://api.example.com/issues', 'read', 'read'],
    ['GET', 'https://api.example.com/admin/users', 'deny', 'admin'],
    ['DELETE', 'https://api.example.com/issues', 'deny', 'read'],
    ['GET', 'https://other.example.com/', 'deny', 'no-rule'],
    ['GET', 'https://api.example.com:8443/', 'deny', 'no-rule'],
    ['GET', 'https://0x7f.1/', 'deny', 'bad-host'],
    ['GET', 'https://api.example.com/%2e%2e/x', 'deny', 'bad-target'],
    ['TRACE', 'https://api.example.com/', 'deny', 'trace'],
  ])('%s %s: %s by %s', (method, url, kind, by) => {
    expect(netTest(PROFILE, method, url)).toMatchObject({ class: kind, rule: by })
  })

  it('says what the rules alone cannot decide, and what would help', () => {
    expect(netTest(PROFILE, 'GET', 'https://api.example.com/').open.join()).toContain('addresses')
    expect(netTest(PROFILE, 'GET', 'https://other.example.com/').help).toContain('class: read')
    const graphql = network([rule('g', { class: 'queue', readBody: 'graphql' })])
    expect(netTest(graphql, 'POST', 'https://api.example.com/graphql').open.join()).toContain('graphql')
  })

  it('judges the shape of names like the gate does', () => {
    const open = network([rule('star', { hosts: ['*.example.org'] })])
    const data = 'mzxw6ytboi2dsmrrgq4tanzwhazdgnbv.example.org'
    expect(netTest(open, 'GET', 'https://www.example.org/').class).toBe('read')
    expect(netTest(open, 'GET', `https://${data}/`)).toMatchObject({ class: 'deny', rule: 'name-shape' })
  })
})
