import { connect } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { listenTcp } from '../kernel/netns.ts'
import { DnsServer } from './dns.ts'
import { NameBook } from './name-book.ts'

let server: DnsServer | undefined
afterEach(async () => await server?.close())

async function open(port: number): Promise<void> {
  const fd = listenTcp({ family: 4, address: Uint8Array.from([127, 0, 0, 1]), port })
  server = new DnsServer({
    names: new NameBook(),
    check: () => ({ ok: true }),
    denied: () => undefined,
  })
  await server.listen([], [fd])
}

/** A query for the addresses of `a.test`, with its length in front as TCP wants it. */
const QUERY = Buffer.from('0018123401000001000000000000016104746573740000010001', 'hex')

/** Bytes that came back until the connection was closed, or null when it stays open. */
function exchange(port: number, bytes: Buffer, read: boolean): Promise<Buffer | null> {
  return new Promise((done) => {
    const got: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    const timer = setTimeout(() => {
      socket.destroy()
      done(null)
    }, 4_000)
    if (read) socket.on('data', (chunk: Buffer) => got.push(chunk))
    socket.on('error', () => undefined)
    socket.once('close', () => {
      clearTimeout(timer)
      done(Buffer.concat(got))
    })
    if (!read) setTimeout(() => socket.resume(), 2_000)
  })
}

const PORT = 20_000 + (process.pid % 20_000)

it('answers by TCP, and ends a connection that asks without reading', async () => {
  await open(PORT)
  expect(await exchange(PORT, QUERY, true)).toBeNull()
  const flood = await exchange(PORT, Buffer.concat(Array<Buffer>(200_000).fill(QUERY)), false)
  expect(flood).not.toBeNull()
})

it('takes nothing for a query that is longer than any', async () => {
  await open(PORT + 1)
  expect(await exchange(PORT + 1, Buffer.from('ffff0000', 'hex'), true)).toEqual(Buffer.alloc(0))
})
