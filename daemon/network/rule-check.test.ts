import { describe, expect, it } from 'vitest'
import { network, rule } from '../../test/fixtures/network-rules.ts'
import type { NetworkRule } from '../contract/profile.ts'
import { checkRules } from './rule-check.ts'

const errors = (...rules: NetworkRule[]): string[] =>
  checkRules(network(rules)).map((problem) => `${problem.rule}: ${problem.message}`)

describe('rules that cannot be meant', () => {
  it('finds nothing wrong with a good profile', () => {
    const good = [
      rule('deny', { paths: ['/admin/**'], class: 'deny' }),
      rule('write', { methods: ['POST'], class: 'queue' }),
      rule('read'),
      rule('all', { hosts: ['*.example.org'] }),
    ]
    expect(errors(...good)).toEqual([])
  })

  it.each([
    [{ hosts: [] }, 'no host'],
    [{ hosts: ['*.com'] }, 'at least two labels'],
    [{ hosts: ['0x7f.1'] }, 'can never match'],
    [{ ports: [0] }, 'no port'],
    [{ methods: [] }, 'no method'],
    [{ methods: ['get'] }, 'upper case'],
    [{ methods: ['TRACE', 'GET'] }, 'never allowed'],
    [{ paths: ['admin'] }, 'does not begin with a slash'],
    [{ addresses: ['10.0.0.0/40'] }, 'no address'],
    [{ methods: ['POST'], class: 'read' }, 'can only deny'],
    [{ methods: ['GET'], class: 'queue' }, 'nothing is ever queued'],
    [{ tls: 'tunnel', class: 'queue' }, 'must be "live"'],
    [{ tls: 'tunnel', class: 'live', methods: ['GET'] }, 'cannot be limited'],
    [{ readMethods: ['x'] }, 'no meaning'],
  ] as const)('%o: %s', (over, message) => {
    expect(errors(rule('one', over)).join('\n')).toContain(message)
  })

  it('finds rules that an earlier one hides, contradictions and repeated ids', () => {
    expect(errors(rule('wide', { hosts: ['*.example.com'] }), rule('narrow'))).toEqual([
      'narrow: It can never match: rule "wide" comes first and matches everything it could',
    ])
    expect(errors(rule('a'), rule('b', { class: 'deny' })).join()).toContain('contradicts rule "a"')
    expect(errors(rule('a'), rule('a', { hosts: ['x.example.org'] })).join()).toContain(
      'Two rules have the id',
    )
    const both = [rule('a', { class: 'live', tls: 'tunnel' }), rule('b', { hosts: ['*.example.com'] })]
    expect(errors(...both).join()).toContain('says "intercept"')
  })

  it('finds credentials that go nowhere', () => {
    const grant = {
      placeholder: 'PUZZLED-TOKEN-1',
      source: { kind: 'environment', name: 'T' },
      why: 'x',
    } as const
    const check = (over: object): string =>
      JSON.stringify(
        checkRules(
          network([rule('a')], {
            credentials: [{ ...grant, hosts: ['api.example.com'], header: 'authorization', ...over }],
          }),
        ),
      )
    expect(check({})).toBe('[]')
    expect(check({ hosts: ['other.example.com'] })).toContain('never used')
    expect(check({ header: undefined })).toContain('neither a header')
    expect(check({ placeholder: 'x' })).toContain('8 characters')
  })
})
