import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { hostOf } from '../../test/fixtures/network-rules.ts'
import type { CredentialGrant } from '../contract/profile.ts'
import { Credential, fillIn, Redactor } from './credentials.ts'
import { loadCredentials } from './secret-source.ts'

const PLACEHOLDER = 'PUZZLED-TOKEN-1'
const SECRET = 'sk-live/abc+123=='
const grant: CredentialGrant = {
  placeholder: PLACEHOLDER,
  source: { kind: 'environment', name: 'X' },
  hosts: ['api.example.com'],
  header: 'Authorization',
  query: 'key',
  why: 'x',
}
const credential = new Credential(grant, SECRET)
const fill = (
  host: string,
  target: string,
  headers: [string, string][],
  scheme: 'http' | 'https' = 'https',
) => fillIn([credential], hostOf(host), scheme, target, headers)

describe('credentials', () => {
  it('go to their host, header and parameter only', () => {
    expect(fill('api.example.com', '/', [['authorization', `Bearer ${PLACEHOLDER}`]]).headers).toEqual([
      ['authorization', `Bearer ${SECRET}`],
    ])
    expect(fill('api.example.com', `/?a=1&key=${PLACEHOLDER}`, []).target).toBe(
      `/?a=1&key=${encodeURIComponent(SECRET)}`,
    )
    for (const [host, target, header] of [
      ['evil.test', `/?key=${PLACEHOLDER}`, 'authorization'],
      ['x.api.example.com', `/?key=${PLACEHOLDER}`, 'authorization'],
      ['api.example.com', `/${PLACEHOLDER}?other=${PLACEHOLDER}`, 'x-other'],
    ] as const) {
      const filled = fill(host, target, [[header, PLACEHOLDER]])
      expect([JSON.stringify(filled).includes(SECRET), filled.secrets]).toEqual([false, []])
    }
  })

  it('do not go out in clear text', () => {
    expect(fill('api.example.com', '/', [['authorization', PLACEHOLDER]], 'http').secrets).toEqual([])
  })

  it('reach into Basic', () => {
    const basic = `Basic ${Buffer.from(`user:${PLACEHOLDER}`).toString('base64')}`
    const [, value = ''] = fill('api.example.com', '/', [['authorization', basic]]).headers[0] ?? []
    expect(Buffer.from(value.slice(6), 'base64').toString()).toBe(`user:${SECRET}`)
  })

  it('are never shown', () => {
    expect(JSON.stringify({ credential })).not.toContain(SECRET)
    expect(`${JSON.stringify(Object.entries(credential))}`).not.toContain(SECRET)
  })
})

describe('redaction', () => {
  const { secrets } = fill('api.example.com', '/', [['authorization', PLACEHOLDER]])

  it('finds every spelling, however the stream is cut', () => {
    const spellings = [
      SECRET,
      encodeURIComponent(SECRET),
      Buffer.from(SECRET).toString('base64'),
      Buffer.from(SECRET).toString('hex'),
    ]
    const piece = fc.oneof(fc.constantFrom(...spellings), fc.string({ maxLength: 20 }))
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.integer({ min: 1, max: 30 }), (pieces, step) => {
        const redactor = new Redactor(secrets)
        const bytes = Buffer.from(pieces.join(''))
        const out: Buffer[] = []
        for (let at = 0; at < bytes.length; at += step) out.push(redactor.push(bytes.subarray(at, at + step)))
        const text = Buffer.concat([...out, redactor.end()]).toString()
        for (const spelling of spellings) expect(text).not.toContain(spelling)
      }),
    )
  })

  it('holds nothing back in which no secret begins', () => {
    const redactor = new Redactor(secrets)
    const said = (text: string): string => redactor.push(Buffer.from(text)).toString()
    expect(said('data: {"n":1}\n\n')).toBe('data: {"n":1}\n\n')
    // As much as could become one, until it cannot any more.
    expect([said('data: sk-li'), said('me\n\n')]).toEqual(['data: ', 'sk-lime\n\n'])
    expect([said(`key ${SECRET.slice(0, -1)}`), said(`${SECRET.slice(-1)}.`), redactor.found]).toEqual([
      'key ',
      `${PLACEHOLDER}.`,
      1,
    ])
  })

  it('searches for each secret once, however often it went out and comes back', () => {
    const often = Array.from({ length: 150 }, (): [string, string] => [
      'authorization',
      `Bearer ${PLACEHOLDER}`,
    ])
    const { headers, secrets: sought } = fill('api.example.com', '/', often)
    expect(sought).toEqual(fill('api.example.com', '/', often.slice(0, 1)).secrets)
    const echo = Buffer.from(headers.join('\n'))
    const redactor = new Redactor(sought)
    const searches = vi.spyOn(Buffer.prototype, 'indexOf')
    try {
      expect(redactor.push(echo).toString()).toBe(often.join('\n'))
      expect(redactor.found).toBe(150)
      // Again behind each hit for what was hit, and not for the others.
      expect(searches.mock.calls.length).toBeLessThan(150 + 3 * sought.length)
    } finally {
      searches.mockRestore()
    }
  })

  it('changes nothing else', () => {
    const redactor = new Redactor(secrets)
    const bytes = Buffer.from('nothing to see, sk-live/ab')
    expect(Buffer.concat([redactor.push(bytes), redactor.end()])).toEqual(bytes)
  })
})

describe('sources', () => {
  const load = (source: CredentialGrant['source']) => loadCredentials([{ ...grant, source }])

  it.each([0o604, 0o640, 0o644, 0o620, 0o601])(
    'a file of mode %o is refused, whoever the others are',
    async (mode) => {
      const dir = mkdtempSync(join(tmpdir(), 'puzzled-secret-'))
      const path = join(dir, 'token')
      try {
        writeFileSync(path, SECRET)
        chmodSync(path, mode)
        await expect(load({ kind: 'file', path })).rejects.toMatchObject({
          code: 'profile-invalid',
          message: expect.stringContaining(`others can read the file (mode ${mode.toString(8)})`),
          hint: expect.stringContaining('chmod 600'),
        })
        // The control: the same file, once it is a secret.
        chmodSync(path, 0o600)
        expect((await load({ kind: 'file', path }))[0]?.reveal()).toBe(SECRET)
      } finally {
        rmSync(dir, { recursive: true })
      }
    },
  )

  it('are refused when they are short, missing or hold a line break', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'puzzled-secret-'))
    const path = join(dir, 'token')
    try {
      writeFileSync(path, `${SECRET}\n`, { mode: 0o600 })
      expect((await load({ kind: 'file', path }))[0]?.reveal()).toBe(SECRET)
      writeFileSync(join(dir, 'lines'), 'one line\r\nx-evil: two', { mode: 0o600 })
      for (const source of [
        { kind: 'file', path: join(dir, 'lines') },
        { kind: 'file', path: join(dir, 'missing') },
        { kind: 'environment', name: 'PUZZLED_NOT_SET' },
        { kind: 'command', argv: ['false'] },
        { kind: 'command', argv: ['echo', 'short'] },
      ] as const)
        await expect(load(source), JSON.stringify(source)).rejects.toMatchObject({ code: 'profile-invalid' })
      expect((await load({ kind: 'command', argv: ['echo', SECRET] }))[0]?.reveal()).toBe(SECRET)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})
