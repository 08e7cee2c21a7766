import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { hostOf } from '../../test/fixtures/network-rules.ts'
import { BranchAuthority } from './authority.ts'
import { integer, oid, time } from './der.ts'

const dir = mkdtempSync(join(tmpdir(), 'puzzled-ca-'))
afterAll(() => rmSync(dir, { recursive: true }))
const authority = new BranchAuthority('test')

describe('certificates of a branch', () => {
  it.each(['api.example.com', '10.1.2.3', '2001:db8::1', `${'a'.repeat(60)}.${'b'.repeat(60)}.example`])(
    'for %s pass the strict check of openssl',
    (name) => {
      const host = hostOf(name)
      writeFileSync(join(dir, 'ca.pem'), authority.certificate)
      writeFileSync(join(dir, 'leaf.pem'), authority.leafFor(host))
      const check = host.address === undefined ? ['-verify_hostname', name] : ['-verify_ip', name]
      const args = ['verify', '-x509_strict', '-purpose', 'sslserver', ...check]
      const said = execFileSync('openssl', [...args, '-CAfile', join(dir, 'ca.pem'), join(dir, 'leaf.pem')], {
        encoding: 'utf8',
      })
      expect(said).toContain('OK')
    },
  )

  it('are for one host and from one authority', () => {
    const leaf = new X509Certificate(authority.leafFor(hostOf('api.example.com')))
    const ca = new X509Certificate(authority.certificate)
    expect(leaf.checkHost('api.example.com')).toBe('api.example.com')
    expect(leaf.checkHost('other.example.com')).toBeUndefined()
    expect([leaf.verify(ca.publicKey), leaf.ca, ca.ca]).toEqual([true, false, true])
    const other = new X509Certificate(new BranchAuthority('test').certificate)
    expect(leaf.verify(other.publicKey)).toBe(false)
  })

  it('are made once per host', () => {
    const host = hostOf('api.example.com')
    expect(authority.contextFor(host)).toBe(authority.contextFor(host))
  })
})

describe('DER', () => {
  it('is minimal', () => {
    expect(integer(Buffer.from([0, 0, 0x80])).toString('hex')).toBe('02020080')
    expect(integer(Buffer.from([0])).toString('hex')).toBe('020100')
    expect(oid('1.2.840.10045.4.3.2').toString('hex')).toBe('06082a8648ce3d040302')
    expect(time(new Date('2049-12-31T23:59:59Z')).toString('latin1').slice(2)).toBe('491231235959Z')
    expect(time(new Date('2050-01-01T00:00:00Z')).toString('latin1').slice(2)).toBe('20500101000000Z')
  })
})
