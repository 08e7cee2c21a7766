import { connect, createServer, type Server, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, expect, it } from 'vitest'
import { BudgetMeter } from './budget-meter.ts'
import { LIMITS } from './limits.ts'
import { splice } from './splice.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((done) => server.close(done))
})

async function serve(act: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, act)
  servers.push(server)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return (server.address() as { port: number }).port
}

/** A place that leads to `behind`, as a tunnel or an exposed port does. */
const between = (behind: number, allowHalfOpen = true): Promise<number> =>
  serve((agent) => {
    const upstream = connect({ port: behind, host: '127.0.0.1', allowHalfOpen })
    splice({ limits: LIMITS, budget: new BudgetMeter() }, agent, upstream, undefined, 'x')
  })

it('what the other end said last arrives, however slowly it is read', async () => {
  const size = 2_000_000
  const port = await between(await serve((socket) => socket.end(Buffer.alloc(size))), false)
  const client = connect(port, '127.0.0.1')
  let read = 0
  await new Promise<void>((done, failed) => {
    client.once('readable', () => {
      const slowly = (): void => {
        const chunk = client.read(50_000) ?? client.read()
        read += chunk === null ? 0 : (chunk as Buffer).length
        if (!client.readableEnded && !client.destroyed) setTimeout(slowly, 2)
      }
      setTimeout(slowly, 100)
    })
    client.once('end', done)
    client.once('error', failed)
  })
  expect(read).toBe(size)
})

it('a client that has said everything still gets its answer', async () => {
  const port = await between(
    await serve((socket) => {
      const heard: Buffer[] = []
      socket.on('data', (chunk: Buffer) => heard.push(chunk))
      socket.once('end', () => setTimeout(() => socket.end(`heard ${Buffer.concat(heard)}`), 50))
    }),
  )
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  client.end('question')
  const said: Buffer[] = []
  for await (const chunk of client) said.push(chunk as Buffer)
  expect(Buffer.concat(said).toString()).toBe('heard question')
})

it('an end that breaks off takes the other with it', async () => {
  const port = await between(await serve((socket) => setTimeout(() => socket.resetAndDestroy(), 50)))
  const client = connect(port, '127.0.0.1')
  const agentSide = new Promise<string>((done) => {
    client.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? ''))
    client.once('close', () => done('closed'))
  })
  client.write('x')
  client.resume()
  expect(await agentSide).toMatch(/closed|ECONNRESET/)
})

it('an end that is taken away takes the other with it, whatever is still unsent', async () => {
  const agent = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  // It never takes what is written.
  const upstream = new Duplex({ read: () => undefined, write: () => undefined })
  splice({ limits: LIMITS, budget: new BudgetMeter() }, agent, upstream, undefined, 'x')
  agent.push('the last words')
  agent.push(null)
  await expect.poll(() => agent.readableEnded).toBe(true)
  agent.destroy()
  await expect.poll(() => upstream.destroyed).toBe(true)
})

it('what must not arrive is held back and ends both', async () => {
  let heard = false
  const other = await serve((socket) => {
    const over = (): void => {
      heard = true
      socket.destroy()
    }
    socket.once('end', over).on('error', over)
    socket.write('fine, ')
    socket.once('data', () => socket.write('secret'))
  })
  const port = await serve((agent) => {
    const upstream = connect({ port: other, host: '127.0.0.1' })
    const search = {
      push: (chunk: Buffer) => {
        if (chunk.includes('secret')) throw new Error('found')
        return chunk
      },
      end: () => Buffer.from('rest'),
    }
    splice({ limits: LIMITS, budget: new BudgetMeter() }, agent, upstream, undefined, 'x', search)
  })
  const client = connect(port, '127.0.0.1').on('error', () => undefined)
  let text = ''
  client.on('data', (chunk) => {
    text += String(chunk)
    client.write('now')
  })
  await new Promise((done) => client.once('close', done))
  while (!heard) await new Promise((soon) => setTimeout(soon, 5))
  expect(text).toBe('fine, ')
})
