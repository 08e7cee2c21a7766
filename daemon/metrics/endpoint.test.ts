import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MetricsEndpoint } from './endpoint.ts'

let directory = ''
let socket = ''
let open: MetricsEndpoint | undefined

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'puzzled-metrics-'))
  socket = join(directory, 'metrics.sock')
})
afterEach(async () => {
  await open?.close()
  open = undefined
  await rm(directory, { recursive: true })
})

const offer = async (change: { gid?: number; port?: number } = {}): Promise<void> => {
  const options = { socket, gid: change.gid ?? null, port: change.port ?? null }
  open = await MetricsEndpoint.open(options, () => 'a 1\n# EOF\n')
}

async function ask(options: RequestOptions): Promise<{ status: number; type: string; body: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(options, resolve).once('error', reject).end()
  })
  const body = await text(response)
  return { status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', body }
}

it('answers on a socket that is its owner’s, and leaves nothing behind', async () => {
  await writeFile(socket, 'what an earlier daemon left')
  await offer()
  expect((await stat(socket)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['metrics.sock'])
  expect(await ask({ socketPath: socket, path: '/metrics', agent: false })).toEqual({
    status: 200,
    type: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
    body: 'a 1\n# EOF\n',
  })
  await open?.close()
  expect(await readdir(directory)).toEqual([])
})

it('lets a group in when there is one, and nobody else', async () => {
  const gid = process.getegid?.() ?? 0
  await offer({ gid })
  const { mode, gid: group } = await stat(socket)
  expect([mode & 0o777, group]).toEqual([0o660, gid])
})

it.each([
  ['another path', { path: '/' }, 404],
  ['another verb', { path: '/metrics', method: 'POST' }, 405],
  ['a name that a web page made up', { path: '/metrics', headers: { host: 'evil.example' } }, 421],
])('refuses %s', async (_what, change, status) => {
  await offer()
  expect((await ask({ socketPath: socket, agent: false, ...change })).status).toBe(status)
})

it('is on the loopback when that is asked for; a port that is taken opens nothing', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const address = other.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  await expect(offer({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  expect(await readdir(directory)).toEqual([])
  await new Promise((resolve) => other.close(resolve))
  await offer({ port })
  expect((await ask({ host: '127.0.0.1', port, path: '/metrics', agent: false })).status).toBe(200)
})
