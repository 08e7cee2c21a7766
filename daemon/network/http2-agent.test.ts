import { connect } from 'node:http2'
import { createServer, connect as dial, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { Http2Agents } from './http2-agent.ts'
import { LIMITS } from './limits.ts'

/** What an agent is told, of an answer with these headers. */
async function answered(headers: readonly (readonly [string, string])[], status = 200): Promise<unknown> {
  const agents = new Http2Agents(LIMITS, {
    serve: (_from, to) => {
      to.head(status, headers)
      to.end()
    },
    denied: () => undefined,
  })
  const server = createServer((socket) => agents.take(socket))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  // More than any test says: Node's own client ends the process after headers that are more than it takes.
  const session = connect(`http://127.0.0.1:${port}`, { maxHeaderListPairs: 4_000 })
  session.on('error', () => undefined)
  try {
    const stream = session.request({ ':path': '/' })
    return await new Promise((done) => stream.on('response', done).on('error', done).on('close', done))
  } finally {
    agents.close()
    session.destroy()
    server.close()
  }
}

it('passes on every value of a header', async () => {
  const told = await answered([
    ['x-one', 'a'],
    ['set-cookie', 'a=1'],
    ['x-one', 'b'],
    ['set-cookie', 'b=2'],
    ['set-cookie', 'c=3'],
  ])
  expect(told).toMatchObject({ ':status': 200, 'x-one': 'a, b', 'set-cookie': ['a=1', 'b=2', 'c=3'] })
})

it('passes on a status of a site of its own', async () => {
  for (const status of [599, 999]) expect(await answered([], status)).toMatchObject({ ':status': status })
})

it('copies nothing for each time that a header is said', async () => {
  let copied = 0
  const original = Array.prototype.flat
  Array.prototype.flat = function (this: unknown[], ...rest: []) {
    if (Array.isArray(this[0])) copied += this[0].length
    return original.apply(this, rest)
  } as typeof original
  try {
    await answered(Array.from({ length: 2_000 }, () => ['a', ''] as const))
  } finally {
    Array.prototype.flat = original
  }
  expect(copied).toBe(0)
})

it('has no more connections than it may', async () => {
  const [denied, open]: [string[], Socket[]] = [[], []]
  const agents = new Http2Agents(
    { ...LIMITS, sessions: 2 },
    { serve: () => undefined, denied: (_subject, { rule }) => void denied.push(rule) },
  )
  const server = createServer((socket) => agents.take(socket))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  const dialled = async (): Promise<Socket> => {
    const socket = dial(port, '127.0.0.1').on('error', () => undefined)
    open.push(socket)
    return socket
  }
  try {
    await dialled()
    const second = await dialled()
    const third = await dialled()
    await expect.poll(() => [denied, third.resume().destroyed]).toEqual([['too-many-connections'], true])
    second.destroy()
    await expect.poll(() => [...open].filter((socket) => !socket.destroyed).length).toBe(1)
    const fourth = await dialled()
    await expect.poll(() => fourth.bytesRead > 0 || fourth.read() !== null).toBe(true)
    expect(denied).toEqual(['too-many-connections'])
  } finally {
    agents.close()
    for (const socket of open) socket.destroy()
    server.close()
  }
})
