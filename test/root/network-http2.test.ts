import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Rig } from './network-rig.ts'

const it = needs(root, program('curl'))
const PROFILE = network([
  rule('live', { hosts: ['live.example.com'], class: 'live' }),
  rule('read', { hosts: ['*.example.com'], methods: ['GET'] }),
])

let rig: Rig
/** Requests that the other end saw end before it answered. */
let left = 0
beforeEach(async () => {
  left = 0
  rig = await Rig.open(PROFILE)
  rig.outside.handler = (request, response) => {
    const url = request.url ?? ''
    if (url === '/count') {
      let size = 0
      request.on('data', (bytes: Buffer) => {
        size += bytes.length
      })
      request.on('end', () => response.end(String(size)))
    } else if (url === '/early') {
      response.writeHead(413, { 'content-length': '9' })
      response.end('too large')
    } else if (url === '/large') {
      let pieces = 100
      const more = (): void => {
        if (pieces-- === 0) response.end()
        else response.write(Buffer.alloc(1_048_576, 1), more)
      }
      more()
    } else if (url === '/cut') {
      response.writeHead(200, { 'content-length': '100000' })
      response.write(Buffer.alloc(50_000), () => response.destroy())
    } else if (url === '/cut-chunks') response.write(Buffer.alloc(50_000), () => response.destroy())
    else if (url === '/never') response.once('close', () => left++)
    else if (url === '/trailers') {
      response.writeHead(200, { trailer: 'x-end' })
      response.write('body')
      response.addTrailers({ 'x-end': 'told' })
      response.end()
    } else if (url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      // The next one comes when the first was seen.
      rig.outside.upgrade = () => response.end('data: 2\n\n')
    } else if (url === '/seen') {
      rig.outside.upgrade?.(request, request.socket, Buffer.alloc(0))
      response.end('ok')
    } else response.end(`hello ${url}`)
  }
})
afterEach(async () => await rig.close())

/** A client in the branch, of which `session` is connected to the host; what it says is what it returns. */
async function node(host: string, body: string): Promise<unknown> {
  const script = `
const http2 = require('node:http2')
const session = http2.connect('https://${host}', { maxSessionMemory: 1000 })
const ask = (headers, body, at = () => {}) => new Promise((done) => {
  const stream = session.request(headers); let size = 0; let text = ''; const told = {}
  stream.on('response', (h) => { told.status = h[':status'] }).on('trailers', (h) => { told.trailers = h['x-end'] })
  stream.on('data', (bytes) => { size += bytes.length; if (text.length < 200) text += bytes; at(text, stream) })
  stream.on('error', (error) => { told.error = error.code }).on('close', () => done({ ...told, size, text }))
  if (body === undefined) stream.end(); else stream.end(body) })
;(async () => { const said = await (async () => { ${body} })(); console.log(JSON.stringify(said)); session.destroy() })()
`
  const said = await rig.run([process.execPath, '-e', script])
  expect(said.err).toBe('')
  return JSON.parse(said.out)
}

it('a large upload that is refused is told so, by the gate and by the other end', async () => {
  for (const [url, status] of [
    ['https://a.example.com/count', 403],
    ['https://live.example.com/early', 413],
  ] as const) {
    const said = await rig.run(
      ['curl', '-sS', '--max-time', '60', '-w', '|%{http_code} %{http_version}', '--data-binary', '@-', url],
      { input: 'x'.repeat(10_000_000) },
    )
    expect([said.out.split('|')[1], url]).toEqual([`${status} 2`, url])
  }
  const said = await node(
    'a.example.com',
    `const all = []; for (let n = 0; n < 20; n++) all.push(ask({ ':path': '/count', ':method': 'POST' }, Buffer.alloc(10_000_000)))
    const refused = await Promise.all(all)
    return [refused.map((one) => one.status), (await ask({ ':path': '/x' })).text]`,
  )
  expect(said).toEqual([Array(20).fill(403), 'hello /x'])
})

it('a large upload and a large download arrive whole', async () => {
  const said = await node(
    'live.example.com',
    `const [up, down] = await Promise.all([
      ask({ ':path': '/count', ':method': 'POST' }, Buffer.alloc(20_000_000)), ask({ ':path': '/large' })])
    return [up.text, down.size, down.error]`,
  )
  expect(said).toEqual(['20000000', 104_857_600, null])
})

it('two hundred requests at once, and a thousand in a row, are each answered with their own', async () => {
  const said = await node(
    'live.example.com',
    `const wrong = []; const check = (path, one) => { if (one.text !== 'hello ' + path) wrong.push([path, one]) }
    await Promise.all(Array.from({ length: 200 }, async (_, n) => check('/p' + n, await ask({ ':path': '/p' + n }))))
    for (let n = 0; n < 1000; n++) check('/s' + n, await ask({ ':path': '/s' + n }))
    return wrong`,
  )
  expect(said).toEqual([])
})

it('half an answer is no answer', async () => {
  const said = await node(
    'live.example.com',
    `return [(await ask({ ':path': '/cut' })).error, (await ask({ ':path': '/cut-chunks' })).error, (await ask({ ':path': '/x' })).text]`,
  )
  expect(said).toEqual(['ERR_HTTP2_STREAM_ERROR', 'ERR_HTTP2_STREAM_ERROR', 'hello /x'])
})

it('events come one by one, trailers behind the body, and what is cancelled ends at the other end', async () => {
  const said = await node(
    'live.example.com',
    `const events = await ask({ ':path': '/events' }, undefined, (text) => { if (text.endsWith('1\\n\\n')) void ask({ ':path': '/seen' }) })
    const trailers = await ask({ ':path': '/trailers' })
    const never = session.request({ ':path': '/never' }); never.on('error', () => {}); setTimeout(() => never.close(8), 200)
    await new Promise((done) => never.once('close', done))
    return [events.text, trailers.text, trailers.trailers, (await ask({ ':path': '/x' })).text]`,
  )
  expect(said).toEqual(['data: 1\n\ndata: 2\n\n', 'body', 'told', 'hello /x'])
  for (let n = 0; n < 500 && left === 0; n++) await setTimeout(20)
  expect(left).toBe(1)
  expect(rig.events.filter(({ kind }) => kind === 'denial')).toEqual([])
})
