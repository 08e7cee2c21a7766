import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'

const it = needs(root, program('curl'))
const SECRET = 'sk-live-0123456789abcdef'
const PLACEHOLDER = 'PUZZLED-TOKEN-1'
const URL = 'https://api.example.com/'

let secrets = ''
let rig: Rig
beforeEach(async () => {
  secrets = mkdtempSync(join(tmpdir(), 'puzzled-secrets-'))
  const path = join(secrets, 'token')
  writeFileSync(path, `${SECRET}\n`, { mode: 0o600 })
  const source = { kind: 'file', path } as const
  const grant = {
    placeholder: PLACEHOLDER,
    source,
    hosts: ['api.example.com'],
    header: 'authorization',
    why: 'test',
  }
  rig = await Rig.open(network([rule('live', { class: 'live' })], { credentials: [grant] }))
})
afterEach(async () => {
  await rig.close()
  rmSync(secrets, { recursive: true })
})

const curl = async (...args: string[]): Promise<string> =>
  (await rig.run(['curl', '-sS', '--http1.1', '--max-time', '60', '-w', '|%{http_code}', ...args, URL])).out
const bearer = (token: string): string[] => ['-H', `Authorization: Bearer ${token}`]

/** Says what it was sent, or the part of it that was asked for, in whatever way servers let one ask. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  const text = `you sent ${request.headers.authorization}`
  const { range, 'x-ms-range': azure, 'request-range': old } = request.headers
  const part = /^bytes=(\d+)-(\d*)$/.exec(String(range ?? azure ?? old ?? ''))
  response.setHeader('accept-ranges', 'bytes')
  if (part === null) response.end(text)
  else {
    const [from, to] = [Number(part[1]), part[2] === '' ? text.length - 1 : Number(part[2])]
    response.writeHead(206, { 'content-range': `bytes ${from}-${to}/${text.length}` })
    response.end(text.slice(from, to + 1))
  }
}

describe('S40 an echo in pieces', () => {
  it.each(['Range', 'X-Ms-Range', 'Request-Range'])('cannot be asked for by %s', async (name) => {
    rig.outside.handler = echo
    const ask = (token: string, range: string) => curl(...bearer(token), '-H', `${name}: bytes=${range}`)
    for (const range of ['0-25', '26-']) {
      const said = await ask(PLACEHOLDER, range)
      expect(said).toBe(`you sent Bearer ${PLACEHOLDER}|200`)
      for (let at = 0; at + 5 <= SECRET.length; at++) expect(said).not.toContain(SECRET.slice(at, at + 5))
    }
    expect(await curl('-i', ...bearer(PLACEHOLDER))).toMatch(/^accept-ranges: none\r$/m)
    // The control: without a credential parts are parts, and this server would have said the secret in two.
    expect(await ask(SECRET, '0-25')).toBe(`you sent Bearer ${SECRET.slice(0, 10)}|206`)
    expect(await ask(SECRET, '26-')).toBe(`${SECRET.slice(10)}|206`)
  })

  it('an answer without a body says how long one would be', async () => {
    rig.outside.handler = (request, response) => {
      response.setHeader('content-length', 4_711)
      response.setHeader('x-echo', request.headers.authorization ?? '')
      response.end()
    }
    const said = await curl('-I', ...bearer(PLACEHOLDER))
    expect(said).toMatch(/^content-length: 4711\r$/m)
    expect(said).toContain(`x-echo: Bearer ${PLACEHOLDER}`)
  })

  it('a server that does not upgrade is heard, without the secret', async () => {
    rig.outside.upgrade = ({ headers }, socket) => {
      const body = `{"error":"bad token ${headers.authorization}"}`
      const head = `HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\nx-echo: ${headers.authorization}`
      socket.end(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    }
    const words = 'Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Key: eA=='
    const said = await curl('-i', ...words.split('|').flatMap((line) => ['-H', line]), ...bearer(PLACEHOLDER))
    expect(said).toMatch(/^HTTP\/1\.1 401 Unauthorized\r$/m)
    expect(said).toMatch(/^www-authenticate: Bearer\r$/m)
    expect(said).toContain(`x-echo: Bearer ${PLACEHOLDER}\r\n`)
    expect(said).toContain(`{"error":"bad token Bearer ${PLACEHOLDER}"}|401`)
    expect(said).not.toContain(SECRET)
  })
})
