import { describe, expect, it } from 'vitest'
import { hostOf, network, requestOf, rule } from '../../test/fixtures/network-rules.ts'
import { netTest } from './net-test.ts'
import { compileRules, connectionRule, decide, decideWithBody } from './request-rule.ts'

const RULES = compileRules(
  network([
    rule('secret', { paths: ['/admin/**'], class: 'deny' }),
    rule('model', { hosts: ['llm.example.net'], class: 'live' }),
    rule('issues', { paths: ['/repos/*/issues'], methods: ['GET', 'POST'], class: 'queue' }),
    rule('graph', { paths: ['/graphql'], methods: ['POST'], class: 'queue', readBody: 'graphql' }),
    rule('docs', { hosts: ['*.example.org'], ports: [80, 443] }),
    rule('git', { hosts: ['git.example.com'], class: 'queue' }),
    rule('reads'),
  ]),
)
const judge = (method: string, url: string, headers: Record<string, string> = {}) => {
  const { class: kind, rule: id } = decide(RULES, requestOf(method, url, headers))
  return `${kind} ${id}`
}

describe('classes', () => {
  it.each([
    ['GET', 'https://api.example.com/x', 'read reads'],
    ['POST', 'https://api.example.com/x', 'deny reads'],
    ['GET', 'https://api.example.com/repos/a/issues', 'read issues'],
    ['POST', 'https://api.example.com/repos/a/issues', 'queue issues'],
    ['POST', 'https://api.example.com/repos/a/b/issues', 'deny reads'],
    ['DELETE', 'https://api.example.com/repos/a/issues', 'deny reads'],
    ['POST', 'https://llm.example.net/v1/messages', 'live model'],
    ['GET', 'https://api.example.com/admin', 'deny secret'],
    ['GET', 'https://api.example.com/admin/users', 'deny secret'],
    ['GET', 'https://api.example.com/administer', 'read reads'],
    ['GET', 'http://a.b.example.org/', 'read docs'],
    ['GET', 'http://example.org/', 'deny no-rule'],
    ['GET', 'https://a.example.org:8443/', 'deny no-rule'],
    ['GET', 'https://evil.test/', 'deny no-rule'],
    ['TRACE', 'https://llm.example.net/', 'deny trace'],
    ['PROPFIND', 'https://api.example.com/x', 'deny reads'],
  ])('%s %s: %s', (method, url, expected) => expect(judge(method, url)).toBe(expected))
})

describe('a read that is a write (S38)', () => {
  it.each([
    ['GET', '/x', { 'X-HTTP-Method-Override': 'DELETE' }],
    ['GET', '/x', { 'x-http-method': 'PUT' }],
    ['GET', '/x?_method=delete', {}],
    ['GET', '/x', { upgrade: 'websocket', connection: 'upgrade' }],
    ['GET', '/x', { 'content-length': '5' }],
    ['GET', '/x', { 'transfer-encoding': 'chunked' }],
    ['GET', '/x', { 'X-Original-URL': '/admin' }],
    ['GET', '/graphql?query=mutation%7Bdrop%7D', {}],
    ['GET', '/repo.git/info/refs?service=git-receive-pack', {}],
    ['GET', '/repo.git/info/refs?service=git-upload-pack&service=git-receive-pack', {}],
    ['POST', '/repo.git/git-receive-pack', {}],
    ['POST', '/repo.git/git-upload-pack', { 'content-type': 'application/json' }],
    ['PUT', '/bucket/key?X-Amz-Signature=abc', {}],
  ])('%s %s %o is denied by a rule for reads', (method, path, headers) => {
    expect(judge(method, `https://api.example.com${path}`, headers)).toBe('deny reads')
  })

  it('lets the ordinary forms pass', () => {
    expect(judge('GET', 'https://api.example.com/x?_method=get')).toBe('read reads')
    expect(judge('GET', 'https://api.example.com/x', { 'content-length': '0' })).toBe('read reads')
    expect(judge('GET', 'https://git.example.com/r.git/info/refs?service=git-upload-pack')).toBe('read git')
    const fetch = { 'content-type': 'application/x-git-upload-pack-request', 'content-length': '9' }
    expect(judge('POST', 'https://git.example.com/r.git/git-upload-pack', fetch)).toBe('read git')
  })

  it('does not queue what needs an answer now, and says which grant helps', () => {
    const push = decide(RULES, requestOf('POST', 'https://git.example.com/r.git/git-receive-pack'))
    expect(push).toMatchObject({ class: 'deny', rule: 'git' })
    expect(push.reason).toContain('git push')
    expect(push.help).toContain('class: live')
    expect(judge('GET', 'https://git.example.com/s', { upgrade: 'websocket' })).toBe('deny git')
    expect(judge('GET', 'https://llm.example.net/s', { upgrade: 'websocket' })).toBe('live model')
  })

  it('needs a rule for the method and for what overrides it', () => {
    const override = { 'x-http-method-override': 'DELETE' }
    expect(judge('POST', 'https://api.example.com/repos/a/issues', override)).toBe('deny reads')
    const get = { 'x-http-method-override': 'GET' }
    expect(judge('POST', 'https://api.example.com/repos/a/issues', get)).toBe('queue issues')
  })
})

describe('ambiguous paths', () => {
  it.each(['/x%2fadmin', '//admin', '/%61dmin%2Fx', '/admin%252fx', '/%2561dmin/x'])(
    '%s is not let past the rule for /admin',
    (path) => {
      expect(judge('GET', `https://api.example.com${path}`)).toMatch(/^(deny|read reads$)/)
    },
  )

  it('refuses a path that one server reads as denied and another as allowed', () => {
    for (const path of ['//admin', '/admin%2fx', '/%2561dmin/x', '/./admin', '/%2e/admin/./x'])
      expect(judge('GET', `https://api.example.com${path}`), path).toMatch(/^deny (ambiguous-path|secret)$/)
    expect(judge('GET', 'https://api.example.com/@scope%2fname')).toBe('read reads')
  })
})

describe('open-read', () => {
  const open = compileRules(
    network([rule('no', { hosts: ['bad.test'], class: 'deny' })], { mode: 'open-read' }),
  )
  it('reads any host, writes none, and rules still come first', () => {
    expect(decide(open, requestOf('GET', 'https://any.test/x'))).toMatchObject({
      class: 'read',
      rule: 'open-read',
    })
    expect(decide(open, requestOf('POST', 'https://any.test/x'))).toMatchObject({
      class: 'deny',
      rule: 'open-read',
    })
    expect(decide(open, requestOf('GET', 'https://bad.test/x'))).toMatchObject({ class: 'deny', rule: 'no' })
  })
})

describe('empty and broken lists', () => {
  it('match nothing', () => {
    for (const over of [
      { hosts: [] },
      { hosts: ['*'] },
      { hosts: ['*.com'] },
      { methods: [] },
      { paths: [] },
      { ports: [] },
    ]) {
      const rules = compileRules(network([rule('broken', over)]))
      expect(decide(rules, requestOf('GET', 'https://api.example.com/')).rule).toBe('no-rule')
    }
    expect(decide(compileRules(network([])), requestOf('GET', 'https://api.example.com/')).class).toBe('deny')
    const none = compileRules(network([rule('all')], { mode: 'none' }))
    expect(decide(none, requestOf('GET', 'https://api.example.com/')).rule).toBe('no-network')
  })
})

describe('bodies', () => {
  it('decide only for rules that say so', () => {
    const request = requestOf('POST', 'https://api.example.com/graphql', { 'content-length': '9' })
    const decision = decide(RULES, request)
    expect(decision).toMatchObject({ class: 'queue', needsBody: 'graphql' })
    expect(decideWithBody(decision, true)).toMatchObject({ class: 'read', rule: 'graph' })
    expect(decideWithBody(decision, false)).toMatchObject({ class: 'queue', rule: 'graph' })
  })
})

describe('connections', () => {
  const rules = compileRules(
    network([
      rule('opaque', { hosts: ['t.example.com'], class: 'live', tls: 'tunnel' }),
      rule('mixed-a', { hosts: ['m.example.com'], class: 'live', tls: 'tunnel' }),
      rule('mixed-b', { hosts: ['*.example.com'], class: 'queue' }),
      rule('never', { hosts: ['d.example.net'], class: 'deny' }),
    ]),
  )
  it('are tunnelled only when every rule of the host is', () => {
    expect(connectionRule(rules, hostOf('t.example.com'), 443)).toMatchObject({ tls: 'intercept' })
    const alone = compileRules(network([rule('opaque', { class: 'live', tls: 'tunnel' })]))
    expect(connectionRule(alone, hostOf('api.example.com'), 443)).toMatchObject({
      allowed: true,
      tls: 'tunnel',
    })
  })
  it('are refused without a rule, to other ports and where all is denied', () => {
    expect(connectionRule(rules, hostOf('x.test'), 443).allowed).toBe(false)
    expect(connectionRule(rules, hostOf('m.example.com'), 22).allowed).toBe(false)
    expect(connectionRule(rules, hostOf('d.example.net'), 443)).toMatchObject({ decision: { rule: 'never' } })
  })
})

describe('net test', () => {
  const profile = network([rule('issues', { methods: ['POST'], class: 'queue' })])
  it('answers from the same rules', () => {
    expect(netTest(profile, 'post', 'https://api.example.com/x#frag')).toMatchObject({
      class: 'queue',
      rule: 'issues',
    })
    expect(netTest(profile, 'GET', 'https://api.example.com/x').help).toContain('class: read')
    expect(netTest(profile, 'GET', 'https://0x7f.1/x').rule).toBe('bad-host')
    expect(netTest(profile, 'GET', 'https://api.example.com/../x').rule).toBe('bad-target')
  })
})
