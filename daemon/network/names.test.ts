import { describe, expect, it } from 'vitest'
import { hostOf, network, rule } from '../../test/fixtures/network-rules.ts'
import { parseAddress } from './address.ts'
import { NameBook } from './name-book.ts'
import { entropy, NameGuard } from './name-guard.ts'
import { compileRules } from './request-rule.ts'

describe('the name book', () => {
  it('gives stable addresses that lead back to the name, also after a restart', () => {
    const book = new NameBook()
    const first = book.assign(hostOf('api.example.com'))
    expect(book.assign(hostOf('api.example.com'))).toEqual(first)
    expect(new NameBook().assign(hostOf('api.example.com'))).toEqual(first)
    if (first === undefined) throw new Error('full')
    expect(book.nameOf(first.v4)?.text).toBe('api.example.com')
    expect(book.nameOf(first.v6)?.text).toBe('api.example.com')
    for (const text of ['198.18.0.0', '8.8.8.8', 'fd70:757a:7a6c::808:808', '::1']) {
      const other = parseAddress(text)
      expect(other === undefined ? 'bad' : book.nameOf(other)).toBeUndefined()
    }
  })

  it('keeps names apart and ends when it is full', () => {
    const book = new NameBook()
    const seen = new Set<string>()
    for (let n = 0; n < 8_192; n++) seen.add(book.assign(hostOf(`n${n}.example`))?.v4.text ?? '')
    expect(seen.size).toBe(8_192)
    expect([...seen].every((text) => /^198\.1[89]\./.test(text))).toBe(true)
    expect(book.assign(hostOf('one.more.example'))).toBeUndefined()
  })
})

describe('the name guard (S34)', () => {
  const rules = compileRules(
    network([
      rule('no', { hosts: ['deny.example.com'], class: 'deny' }),
      rule('exact', { hosts: [`${'q3x9zk7w5v1b8n2m4l6j0h'.repeat(2)}.example.org`] }),
      rule('star', { hosts: ['*.example.com'] }),
    ]),
  )
  const check = (name: string, guard = new NameGuard(rules)) => {
    const verdict = guard.check(hostOf(name), 0)
    return verdict.ok ? 'ok' : verdict.rule
  }

  it('lets names of rules pass and no others', () => {
    expect(check('api.example.com')).toBe('ok')
    expect(check('example.com')).toBe('no-rule')
    expect(check('evil.test')).toBe('no-rule')
    expect(check('a.example.com.evil.test')).toBe('no-rule')
    expect(new NameGuard(compileRules(network([], { mode: 'none' }))).check(hostOf('a.b'), 0).ok).toBe(false)
  })

  it('refuses names that carry data below a star, not ones that a rule spells out', () => {
    expect(check('q3x9zk7w5v1b8n2m4l6j0hq3x9zk7w5v1b8n2m4l6j0h.example.org')).toBe('ok')
    expect(check('mzxw6ytboi2dsnbrgm3dkobzge4tqnjuga2tknbu.example.com')).toBe('name-shape')
    expect(check(`${'a'.repeat(51)}.example.com`)).toBe('name-shape')
    expect(check('a.b.c.d.e.f.g.h.i.example.com')).toBe('name-shape')
    for (const good of [
      'my-company-internal-artifact-registry.example.com',
      'ec2-203-0-113-25.compute-1.example.com',
    ])
      expect(check(good), good).toBe('ok')
  })

  it('refuses too many new names in a minute, and old ones never', () => {
    const guard = new NameGuard(rules)
    for (let n = 0; n < 120; n++) expect(check(`n${n}.example.com`, guard)).toBe('ok')
    expect(check('n120.example.com', guard)).toBe('name-rate')
    expect(check('n7.example.com', guard)).toBe('ok')
    expect(guard.check(hostOf('n121.example.com'), 1).ok).toBe(true)
  })

  it('measures entropy', () => {
    expect(entropy('aaaa')).toBe(0)
    expect(entropy('abcd')).toBe(2)
  })
})
