import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileGlob, parseAbsolute, parseTarget } from './request-target.ts'

describe('targets', () => {
  it.each([
    ['http://x/', 'not-a-path'],
    ['*', 'not-a-path'],
    ['', 'not-a-path'],
    ['/a b', 'control-character'],
    ['/a\r\nX: y', 'control-character'],
    ['/a\0', 'control-character'],
    ['/ä', 'not-ascii'],
    ['/a\\b', 'backslash'],
    ['/a%5cb', 'backslash'],
    ['/a#b', 'fragment'],
    ['/%', 'bad-escape'],
    ['/%2', 'bad-escape'],
    ['/%zz', 'bad-escape'],
    ['/a%00b', 'encoded-nul'],
    ['/a%0d%0ab', 'encoded-nul'],
    ['/a/../b', 'dot-segment'],
    ['/a/..', 'dot-segment'],
    ['/.;x/a', 'dot-segment'],
    ['/./../a', 'dot-segment'],
    ['/a/%2e%2e/b', 'dot-segment'],
    ['/a/.%2E/b', 'dot-segment'],
    ['/a/..%2fb', 'dot-segment'],
    ['/a/%252e%252e/b', 'dot-segment'],
    ['/a/..;x=1/b', 'dot-segment'],
    [`/${'a'.repeat(16_384)}`, 'too-long'],
  ])('%s is refused: %s', (raw, reason) => expect(parseTarget(raw)).toEqual({ ok: false, reason }))

  it('keeps the wire form and knows how servers may read it', () => {
    expect(parseTarget('/a/b?x=/../y')).toMatchObject({
      ok: true,
      target: { raw: '/a/b?x=/../y', readings: ['/a/b'], query: 'x=/../y' },
    })
    expect(parseTarget('/@s%2fname')).toMatchObject({ target: { readings: ['/@s%2Fname', '/@s/name'] } })
    expect(parseTarget('/a//b')).toMatchObject({ target: { readings: ['/a//b', '/a/b'] } })
    expect(parseTarget('/..a/b..c/...')).toMatchObject({ ok: true })
    expect(parseTarget('/./a/.//./b/.')).toMatchObject({
      target: { raw: '/./a/.//./b/.', readings: ['/./a/.//./b/.', '/./a/././b/.', '/a//b/', '/a/b/'] },
    })
  })

  it('has no reading that climbs', () => {
    const piece = fc.constantFrom('/', '.', '..', '%2e', '%2f', '%252e', '%25', ';', 'a', '//', '%5c')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const parsed = parseTarget(`/${pieces.join('')}`)
        if (!parsed.ok) return
        for (const reading of parsed.target.readings) expect(reading.split('/')).not.toContain('..')
      }),
      { numRuns: 1000 },
    )
  })
})

describe('absolute targets', () => {
  it('are a scheme, a plain authority and the rest', () => {
    expect(parseAbsolute('HTTP://Example.com/a?b')).toMatchObject({ scheme: 'http', port: 80, raw: '/a?b' })
    expect(parseAbsolute('https://example.com:8443?b')).toMatchObject({
      scheme: 'https',
      port: 8443,
      raw: '/?b',
    })
    for (const bad of [
      'ftp://x/',
      'http:/x',
      'http://',
      'http://u@x/',
      'http://x:80:80/',
      'http://x\\y/',
      '//x/',
    ])
      expect(parseAbsolute(bad).ok, bad).toBe(false)
  })
})

describe('globs', () => {
  it.each([
    ['/a/*', ['/a/b', '/a/'], ['/a', '/a/b/c', '/b/b']],
    ['/a/**', ['/a', '/a/', '/a/b/c'], ['/ab', '/b']],
    ['/**/x', ['/a/x', '/a/b/x'], ['/x', '/a/y']],
    ['/a.b+(c)', ['/a.b+(c)'], ['/aXb+(c)', '/a.bb(c)']],
    ['/v?/x', ['/v1/x'], ['/v/x', '/v12/x', '/v//x']],
    ['**', ['/', '/a/b'], []],
  ])('%s', (glob, yes, no) => {
    for (const path of yes) expect(compileGlob(glob).test(path), path).toBe(true)
    for (const path of no) expect(compileGlob(glob).test(path), path).toBe(false)
  })
})
