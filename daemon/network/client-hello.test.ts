import { createServer } from 'node:net'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readClientHello } from './client-hello.ts'

/** What a real client says first. */
async function helloOf(servername: string | undefined): Promise<Buffer> {
  return await new Promise((done) => {
    const server = createServer((socket) => {
      socket.once('data', (bytes) => {
        socket.destroy()
        server.close()
        done(bytes as Buffer)
      })
    })
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      const options = servername === undefined ? {} : { servername }
      connect({ host: '127.0.0.1', port, ...options }).on('error', () => undefined)
    })
  })
}

describe('the first TLS message', () => {
  it('names the server', async () => {
    const hello = readClientHello(await helloOf('api.example.com'))
    expect(hello).toMatchObject({ kind: 'hello', encrypted: false })
    expect(hello.kind === 'hello' ? hello.serverName?.toString() : '').toBe('api.example.com')
    expect(readClientHello(await helloOf(undefined))).toMatchObject({ kind: 'hello', serverName: undefined })
  })

  it('is none when it comes in thousands of records, and that is seen at once', () => {
    const records = Buffer.concat(Array<Buffer>(2_000).fill(Buffer.from([0x16, 3, 1, 0, 1, 1])))
    expect(readClientHello(records).kind).toBe('not-tls')
    expect(readClientHello(records.subarray(0, 17 * 6)).kind).toBe('not-tls')
    expect(readClientHello(Buffer.from([0x16, 3, 1, 0, 0])).kind).toBe('not-tls')
    // A message that says that it is longer than any.
    expect(readClientHello(Buffer.from([0x16, 3, 1, 0, 4, 1, 255, 255, 255])).kind).toBe('not-tls')
  })

  it('is waited for, and may come in several records', async () => {
    const bytes = await helloOf('api.example.com')
    for (const cut of [0, 1, 4, 5, 40, bytes.length - 1])
      expect(readClientHello(bytes.subarray(0, cut)).kind, String(cut)).toBe('incomplete')
    const record = (part: Buffer): Buffer =>
      Buffer.concat([Buffer.from([0x16, 3, 1, part.length >> 8, part.length & 255]), part])
    const body = bytes.subarray(5)
    const split = Buffer.concat([
      record(body.subarray(0, 3)),
      record(body.subarray(3, 60)),
      record(body.subarray(60)),
    ])
    expect(readClientHello(split)).toEqual(readClientHello(bytes))
  })

  it('with a second name or a foreign byte has no name', async () => {
    const bytes = await helloOf('api.example.com')
    const at = bytes.indexOf('api.example.com')
    const longer = Buffer.from(bytes)
    // The list's length says that there is more than one entry.
    longer[at - 4] = (longer[at - 4] ?? 0) + 1
    expect(readClientHello(longer)).toMatchObject({ serverName: undefined })
    expect(readClientHello(Buffer.from('GET / HTTP/1.1\r\n')).kind).toBe('not-tls')
  })

  it('never throws', () => {
    const bytes = fc
      .uint8Array({ maxLength: 400 })
      .map((rest) => Buffer.from([0x16, 3, 1, 0, Math.min(255, rest.length), ...rest]))
    fc.assert(
      fc.property(bytes, (message) => void readClientHello(message)),
      { numRuns: 2000 },
    )
  })
})
