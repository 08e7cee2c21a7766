import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HOSTILE_HOSTS } from '../../test/fixtures/hostile-hosts.ts'
import {
  formatAuthority,
  type Hostname,
  matchesHost,
  parseAuthority,
  parseHostname,
  parseHostPattern,
} from './hostname.ts'

function host(text: string): Hostname {
  const parsed = parseHostname(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.reason}`)
  return parsed.host
}

describe('hostile hosts', () => {
  it('has a corpus of at least 300', () => expect(HOSTILE_HOSTS.length).toBeGreaterThanOrEqual(300))

  it.each(HOSTILE_HOSTS.map((one) => [one.name, JSON.stringify(one.host.slice(0, 60)), one] as const))(
    '%s: %s',
    (_name, _shown, one) => {
      const parsed = parseHostname(one.host)
      expect(parsed.ok ? parsed.host.text : undefined).toBe(one.canonical)
    },
  )

  it('judges bytes like the same characters', () => {
    for (const one of HOSTILE_HOSTS) {
      if (!/^[\x00-\xff]*$/.test(one.host)) continue
      const parsed = parseHostname(Buffer.from(one.host, 'latin1'))
      expect(parsed.ok ? parsed.host.text : undefined).toBe(one.canonical)
    }
  })

  it('never accepts what the WHATWG parser reads as another host', () => {
    for (const one of HOSTILE_HOSTS) {
      const parsed = parseHostname(one.host)
      if (!parsed.ok) continue
      const url = new URL(`http://${formatAuthority(parsed.host, 80, 'http')}/`)
      expect(url.hostname.replace(/^\[|\]$/g, '')).toBe(parsed.host.text)
    }
  })
})

describe('hostname', () => {
  it('is its own canonical form', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.domain(), fc.ipV4(), fc.ipV6()), (text) => {
        const parsed = parseHostname(text)
        if (!parsed.ok) return
        expect(parseHostname(parsed.host.text)).toEqual(parsed)
        expect(parsed.host.text).toMatch(/^[a-z0-9.:-]+$/)
      }),
    )
  })

  it('refuses with the reason', () => {
    expect(parseHostname('evil\0.good.example')).toEqual({ ok: false, reason: 'control-character' })
    expect(parseHostname('0x7f.1')).toEqual({ ok: false, reason: 'odd-address' })
    expect(parseHostname('fe80::1%eth0')).toEqual({ ok: false, reason: 'zone' })
    expect(parseHostname('xn--pple-43d.com')).toEqual({ ok: false, reason: 'mixed-script' })
  })

  it('splits an authority in one way only', () => {
    expect(parseAuthority('Good.example', 443)).toMatchObject({ ok: true, port: 443 })
    expect(parseAuthority('[::1]:8080', 443)).toMatchObject({ ok: true, port: 8080 })
    const bad = [
      'a:',
      'a:0',
      'a:080',
      'a:65536',
      'a:+80',
      'a:8 0',
      'a:80:80',
      '::1:80',
      'u@a:80',
      '[::1]80',
      'a:80\0',
    ]
    for (const text of bad) expect(parseAuthority(text, 80).ok, text).toBe(false)
  })

  it('cuts no character down to another, as in a URL that a person typed', () => {
    for (const text of ['ex\u0161mple.example.com', 'example.example.com\u0141', 'api.example.com\u2f40x'])
      for (const _again of [1, 2])
        expect(parseAuthority(text, 443)).toEqual({ ok: false, reason: 'not-ascii' })
  })
})

describe('host patterns', () => {
  it('refuses a star in front of a single label and stars elsewhere', () => {
    for (const text of [
      '*',
      '*.com',
      '*.',
      '*a.example.com',
      'a.*.com',
      '**.example.com',
      '*.1.2.3.4',
      '*.[::1]',
      '',
    ])
      expect(parseHostPattern(text), text).toBeUndefined()
  })

  it('matches below the suffix, at a label boundary', () => {
    const pattern = parseHostPattern('*.Example.com')
    if (pattern === undefined) throw new Error('pattern')
    expect(['a.example.com', 'a.b.example.com'].every((text) => matchesHost(pattern, host(text)))).toBe(true)
    for (const text of ['example.com', 'badexample.com', 'example.com.evil.test', '1.2.3.4'])
      expect(matchesHost(pattern, host(text)), text).toBe(false)
  })
})
