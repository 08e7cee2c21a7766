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

const PORT = 20_000 + (process.pid % 20_000)

it('answers by TCP, one message after the other', async () => {
  await open(PORT)
  const socket = connect(PORT, '127.0.0.1')
  socket.write(Buffer.concat([QUERY, QUERY]))
  let got = Buffer.alloc(0)
  for await (const chunk of socket) {
    got = Buffer.concat([got, chunk as Buffer])
    const length = 2 + got.readUInt16BE(0)
    if (got.length < 2 * length) continue
    expect(got.subarray(0, length)).toEqual(got.subarray(length))
    expect(got.readUInt16BE(8), 'answers').toBe(1)
    break
  }
})

/** Settles when the connection is over; this side never reads. */
const over = (port: number, bytes: Buffer): Promise<void> =>
  new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('error', () => undefined)
    socket.once('close', () => done())
  })

it('ends a connection that asks without reading, and one whose query is longer than any', async () => {
  await open(PORT + 1)
  await over(PORT + 1, Buffer.concat(Array<Buffer>(400_000).fill(QUERY)))
  // Its end has to be read to be seen, so this one is looked at from the other side.
  const socket = connect(PORT + 1, '127.0.0.1', () => socket.write(Buffer.from('ffff0000', 'hex')))
  socket.on('error', () => undefined).resume()
  await new Promise<void>((done) => socket.once('close', () => done()))
}, 60_000)
