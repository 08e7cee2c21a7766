import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { observeFailpoints } from '../../daemon/lib/failpoint.ts'
import { RequestQueue } from '../../daemon/network/queue.ts'
import { bundleChild } from './child.ts'
import { queueLife } from './queue-life.ts'

let work = ''
let child: Awaited<ReturnType<typeof bundleChild>>

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'puzzled-queue-crash-'))
  child = await bundleChild('queue-child.ts')
})
afterAll(() => {
  rmSync(work, { recursive: true })
  child.remove()
})

type Behaviour = 'accept' | 'drop-after-reading' | 'reset-at-once' | 'error' | 'never-answer'

/** Counts every request that reached it, whatever it then answers. */
class Recorder {
  readonly keys: string[] = []
  readonly bodies = new Map<string, number>()
  readonly #server: Server

  constructor(behaviour: (n: number) => Behaviour) {
    this.#server = createServer((request, response) => {
      const mine = behaviour(this.keys.length)
      const key = String(request.headers['idempotency-key'])
      this.keys.push(key)
      if (mine === 'reset-at-once') request.socket.resetAndDestroy()
      let size = 0
      request.on('data', (chunk: Buffer) => {
        size += chunk.length
      })
      request.on('end', () => {
        this.bodies.set(key, size)
        if (mine === 'accept') response.end('ok')
        if (mine === 'error') response.writeHead(500).end('no')
        if (mine === 'drop-after-reading') request.socket.destroy()
      })
      request.on('error', () => request.socket.destroy())
    })
  }

  async listen(): Promise<number> {
    await new Promise<void>((ready) => this.#server.listen(0, '127.0.0.1', ready))
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }
}

interface Life {
  readonly accepted: string[]
  readonly signal: string | null
  readonly errors: string
}

function live(directory: string, port: number, failpoints: string): Promise<Life> {
  return new Promise((done) => {
    const env = { ...process.env, PUZZLED_FAILPOINTS: failpoints }
    const run = spawn(process.execPath, [child.path, directory, String(port), '4'], { env })
    let said = ''
    let errors = ''
    run.stdout.on('data', (chunk) => {
      said += String(chunk)
    })
    run.stderr.on('data', (chunk) => {
      errors += String(chunk)
    })
    run.on('close', (_code, signal) => {
      const accepted = [...said.matchAll(/^accepted (\S+)$/gm)].map((match) => match[1] ?? '')
      done({ accepted, signal, errors })
    })
  })
}

/** What must be true whenever the daemon is down: journal and recorder tell one story. */
async function check(directory: string, recorder: Recorder, accepted: readonly string[]): Promise<string[]> {
  const queue = await RequestQueue.open(directory)
  const list = queue.list()
  await queue.close()
  expect(queue.damage).toEqual([])
  // Nothing that was acknowledged is lost.
  for (const id of accepted) expect(list.map((one) => one.id)).toContain(id)
  for (const one of list) {
    const times = recorder.keys.filter((key) => key === `puzzled-${one.id}`).length
    expect(times, `${one.id} is ${one.state}`).toBeLessThanOrEqual(1)
    if (one.state === 'sent')
      expect([times, recorder.bodies.get(`puzzled-${one.id}`)]).toEqual([1, one.request.body.size])
    if (one.state === 'queued' || one.state === 'approved') expect(times, one.state).toBe(0)
  }
  // In order: whatever arrived, arrived in the queue's order.
  const order = list.map((one) => `puzzled-${one.id}`).filter((key) => recorder.keys.includes(key))
  expect(recorder.keys).toEqual(order)
  return list.map((one) => one.state)
}

async function scenario(
  behaviour: (n: number) => Behaviour,
  failpoints: string,
): Promise<{ states: string[]; arrived: number; signal: string | null }> {
  const directory = mkdtempSync(join(work, 'q-'))
  const recorder = new Recorder(behaviour)
  const port = await recorder.listen()
  try {
    const first = await live(directory, port, failpoints)
    await check(directory, recorder, first.accepted)
    // The next life, and one more: it must come to rest without sending anything twice.
    const second = await live(directory, port, '')
    expect(second.errors).toBe('')
    await check(directory, recorder, [...first.accepted, ...second.accepted])
    await live(directory, port, '')
    const states = await check(directory, recorder, [...first.accepted, ...second.accepted])
    return { states, arrived: recorder.keys.length, signal: first.signal }
  } finally {
    await recorder.close()
  }
}

/** Steps in front of everything that is sent. The first record of a queue is its own; requests and approvals follow. */
const BEFORE = [
  'queue.before-append',
  'queue.before-write',
  'queue.after-write',
  'queue.after-sync',
  'queue.appended',
].flatMap((name) => [name, `${name}#3`, `${name}#6`])
BEFORE.push('queue.body-durable', 'queue.body-durable#2', 'replay.before-sending', 'replay.before-sending#3')
/** Steps between the record that a request is being sent and the one of how that ended. */
const UNDER_WAY = ['replay.sending', 'replay.answered', 'replay.sending#3', 'replay.answered#3']
const BEHIND = ['replay.recorded', 'replay.recorded#3']

describe('a daemon that dies between two steps', () => {
  it.each(BEFORE)('at %s: everything accepted is sent exactly once', async (name) => {
    const { states, arrived, signal } = await scenario(() => 'accept', `${name}=kill`)
    expect(signal).toBe('SIGKILL')
    expect(states.every((state) => state === 'sent')).toBe(true)
    expect(arrived).toBe(states.length)
  })

  it.each(UNDER_WAY)('at %s: the request is unknown and nothing is sent behind it', async (name) => {
    const { states, arrived, signal } = await scenario(() => 'accept', `${name}=kill`)
    expect(signal).toBe('SIGKILL')
    const sent = name.endsWith('#3') ? 2 : 0
    const expected = ['sent', 'sent', 'unknown', 'approved', 'approved', 'approved'].slice(2 - sent)
    expect(states).toEqual(expected.slice(0, 4))
    expect(arrived).toBe(sent + (name.startsWith('replay.answered') ? 1 : 0))
  })

  it.each(BEHIND)('at %s: goes on behind it', async (name) => {
    const { states, arrived } = await scenario(() => 'accept', `${name}=kill`)
    expect([states, arrived]).toEqual([['sent', 'sent', 'sent', 'sent'], 4])
  })

  it('was killed above at every step that a life of the queue has', async () => {
    const passed = new Set<string>()
    const recorder = new Recorder(() => 'accept')
    const port = await recorder.listen()
    observeFailpoints((name) => passed.add(name))
    try {
      await queueLife(mkdtempSync(join(work, 'q-')), port, 4, () => undefined)
    } finally {
      observeFailpoints(undefined)
      await recorder.close()
    }
    const killed = new Set([...BEFORE, ...UNDER_WAY, ...BEHIND].map((name) => name.replace(/#\d+$/, '')))
    expect([...passed].sort()).toEqual([...killed].sort())
  })
})

describe('another end that misbehaves', () => {
  it.each([
    ['drop-after-reading', 'unknown'],
    ['reset-at-once', 'unknown'],
    ['never-answer', 'unknown'],
    ['error', 'failed'],
  ] as const)('%s at the third request: %s, never retried, nothing behind it', async (behaviour, state) => {
    const { states, arrived } = await scenario((n) => (n === 2 ? behaviour : 'accept'), '')
    expect(states).toEqual(['sent', 'sent', state, 'approved'])
    expect(arrived).toBe(3)
  })
})
