import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SessionClient } from '../../ctl/session-client.ts'
import { type Offered, SessionSocket } from '../../daemon/api/session-socket.ts'
import type { AgentExit } from '../../daemon/contract/branch.ts'
import { EXITED } from '../fakes/ports.ts'

let root: string
let open: SessionSocket[]
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'puzzled-session-'))
  open = []
})
afterEach(async () => {
  for (const socket of open) await socket.close()
  rmSync(root, { recursive: true, force: true })
})

/** Something that runs, of which the test holds the other ends. */
function program() {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  let end: (exit: AgentExit) => void = () => undefined
  const exited = new Promise<AgentExit>((resolve) => {
    end = resolve
  })
  const sizes: number[][] = []
  const session = {
    ...{ input, output, errors, exited },
    resize: (...size: number[]) => void sizes.push(size),
  }
  const finish = (): void => {
    output.end()
    errors.end()
    end({ ...EXITED, code: 3 })
  }
  return { session, finish, sizes, signals: [] as string[], abandoned: 0 }
}
type Program = ReturnType<typeof program>

async function offer(running: Program, command: boolean): Promise<SessionSocket> {
  const offered: Offered = {
    session: running.session,
    owner: process.getuid?.() ?? 0,
    admits: async () => true,
    report: (error) => {
      throw error
    },
    ...(command
      ? {
          command: {
            signal: async (name) => void running.signals.push(name),
            abandoned: async () => {
              running.abandoned++
              running.finish()
            },
          },
        }
      : {}),
  }
  const socket = await SessionSocket.open(join(root, `s${open.length}`), offered)
  open.push(socket)
  return socket
}

const eventually = async (check: () => boolean): Promise<void> => {
  for (let left = 400; !check(); left--) {
    if (left === 0) throw new Error('It never came to that')
    await sleep(5)
  }
}

describe('the socket of a command', () => {
  it('keeps output and errors apart, takes input to its end, and tells the exit last', async () => {
    const running = program()
    const client = await SessionClient.open((await offer(running, true)).path, true)
    const [out, err, typed] = [text(client.output), text(client.errors), text(running.session.input)]
    running.session.output.write('to out')
    running.session.errors.write('to err')
    client.input.end('typed')
    client.resize(100, 40)
    await client.signal('INT')
    expect(await typed).toBe('typed')
    running.finish()
    expect(await client.exited).toMatchObject({ code: 3, cause: 'exited' })
    expect([await out, await err]).toEqual(['to out', 'to err'])
    expect([running.sizes, running.signals]).toEqual([[[100, 40]], ['INT']])
    await eventually(() => readdirSync(root).length === 0)
    expect(running.abandoned).toBe(0)
  })

  it('waits for its caller before it prints, and lets nobody else in', async () => {
    const running = program()
    const { path } = await offer(running, true)
    running.session.output.write('early')
    const client = await SessionClient.open(path, true)
    const stranger = await SessionClient.open(path, true)
    await expect(stranger.exited).rejects.toMatchObject({ code: 'bus-gone' })
    running.finish()
    expect(await text(client.output)).toBe('early')
  })

  it('tells the end of a command that was over before its caller came', async () => {
    const running = program()
    running.session.output.end('quick')
    running.session.errors.end()
    running.session.errors.resume()
    running.finish()
    await sleep(5)
    const { path } = await offer(running, true)
    await sleep(5)
    const client = await SessionClient.open(path, true)
    expect(await text(client.output)).toBe('quick')
    expect(await client.exited).toMatchObject({ code: 3 })
  })

  it('holds the command up while its caller does not read, and loses nothing', async () => {
    const running = program()
    const client = await SessionClient.open((await offer(running, true)).path, true)
    const chunk = Buffer.alloc(64 << 10, 'x')
    let sent = 0
    while (sent < 64 << 20 && running.session.output.writableLength < 1 << 20) {
      running.session.output.write(chunk)
      sent += chunk.length
      await sleep(0)
    }
    expect(sent).toBeLessThan(64 << 20)
    running.finish()
    expect((await text(client.output)).length).toBe(sent)
  })

  it('ends the command when its caller has vanished', async () => {
    const running = program()
    const client = await SessionClient.open((await offer(running, true)).path, true)
    client.close()
    await eventually(() => running.abandoned === 1)
    await expect(client.exited).rejects.toMatchObject({ code: 'bus-gone' })
    await eventually(() => readdirSync(root).length === 0)
  })

  it('can be opened by its owner only', async () => {
    const { path } = await offer(program(), true)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
})

describe('the socket of an agent', () => {
  it('has all of it, and the end, for a caller who comes when it is over', async () => {
    const running = program()
    running.session.output.write(Buffer.alloc(1 << 20, 'x'))
    running.finish()
    const socket = await offer(running, false)
    await sleep(5)
    const client = await SessionClient.open(socket.path, true)
    expect((await text(client.output)).length).toBe(1 << 20)
    expect(await client.exited).toMatchObject({ code: 3 })
    await socket.over
    expect(readdirSync(root)).toEqual([])
  })

  it('shows several readers what was last written and what follows, and goes on without them', async () => {
    const running = program()
    const { path } = await offer(running, false)
    running.session.output.write('before ')
    await sleep(5)
    const [first, second] = [await SessionClient.open(path, false), await SessionClient.open(path, false)]
    const seen = text(second.output)
    await new Promise((resolve) => first.output.once('data', resolve))
    first.close()
    running.session.output.write('after')
    running.finish()
    expect(await seen).toBe('before after')
    expect(await second.exited).toMatchObject({ code: 3 })
    expect(running.abandoned).toBe(0)
  })

  it('lets go of a reader that is too far behind instead of waiting for it', async () => {
    const running = program()
    const { path } = await offer(running, false)
    const caller = await SessionClient.open(path, true)
    caller.output.resume()
    const client = await SessionClient.open(path, false)
    const chunk = Buffer.alloc(64 << 10, 'x')
    for (let sent = 0; sent < 4 << 20; sent += chunk.length) {
      running.session.output.write(chunk)
      await sleep(0)
    }
    await eventually(() => running.session.output.writableLength === 0)
    client.output.resume()
    await expect(client.exited).rejects.toThrow('too far behind')
  })

  it('closes on what is no frame', async () => {
    const running = program()
    const socket = connect((await offer(running, false)).path)
    socket.on('error', () => undefined)
    socket.write('GET / HTTP/1.1\r\n\r\n')
    await new Promise((resolve) => socket.on('close', resolve))
  })
})
