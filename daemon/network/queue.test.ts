import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { armFailpoint } from '../lib/failpoint.ts'
import { DEFAULT_QUEUE_LIMITS, RequestQueue } from './queue.ts'
import { encodeRecord, REQUEST_MOVES, type RequestState } from './queue-record.ts'
import { type ReplayPorts, replay, resume, type SendOutcome, skip } from './replay.ts'

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'puzzled-queue-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

const HEAD = {
  method: 'POST',
  scheme: 'https',
  host: 'api.example.com',
  port: 443,
  target: '/issues',
  headers: [['content-type', 'application/json']],
  rule: 'issues',
} as const

async function* chunks(...parts: (string | Buffer)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part)
}

async function addTo(queue: RequestQueue, body: string | Buffer = '{}'): Promise<string> {
  return (await queue.add(HEAD, await queue.spool(chunks(body)))).id
}

const answered = (status: number): SendOutcome => ({
  kind: 'answered',
  response: { status, headers: [], body: '', truncated: false },
})

describe('the queue', () => {
  it('has everything after a restart, in order, with bodies', async () => {
    const queue = await RequestQueue.open(dir)
    const large = Buffer.alloc(100_000, 7)
    const ids = [await addTo(queue, 'a'), await addTo(queue, large), await addTo(queue, '')]
    await queue.close()
    const again = await RequestQueue.open(dir)
    expect(again.list().map((one) => one.id)).toEqual(ids)
    expect(again.list()).toEqual(queue.list())
    expect((await again.body(ids[0] ?? '')).toString()).toBe('a')
    expect((await again.body(ids[1] ?? '')).equals(large)).toBe(true)
    expect(again.usage).toEqual({ requests: 3, bytes: 100_001 })
    expect(again.get(ids[0] ?? '').request.headers).toContainEqual(['idempotency-key', `puzzled-${ids[0]}`])
    await again.close()
  })

  it('writes requests that arrive together with few syncs', async () => {
    const queue = await RequestQueue.open(dir)
    let syncs = 0
    const disarm = armFailpoint('queue.after-sync', () => {
      syncs++
    })
    await Promise.all(Array.from({ length: 200 }, () => addTo(queue)))
    disarm()
    expect(queue.list()).toHaveLength(200)
    expect(syncs).toBeLessThan(100)
    await queue.close()
  })

  it('refuses when it is full and forgets nothing that it took', async () => {
    const queue = await RequestQueue.open(dir, { maxRequests: 2, maxBytes: 50_000, maxBodyBytes: 40_000 })
    await addTo(queue)
    await expect(queue.spool(chunks(Buffer.alloc(30_000), Buffer.alloc(30_000)))).rejects.toMatchObject({
      code: 'too-large',
    })
    await addTo(queue, Buffer.alloc(30_000))
    await expect(queue.spool(chunks(Buffer.alloc(30_000)))).rejects.toMatchObject({ code: 'queue-full' })
    await expect(addTo(queue)).rejects.toMatchObject({ code: 'queue-full' })
    expect(queue.usage).toEqual({ requests: 2, bytes: 30_002 })
    expect(readdirSync(dir).filter((name) => name.startsWith('body-'))).toHaveLength(1)
    await queue.close()
  })

  it('gives a full disk as a refusal and goes on when there is room again', async () => {
    const queue = await RequestQueue.open(dir)
    const first = await addTo(queue)
    const disarm = armFailpoint('queue.before-write', () => {
      throw Object.assign(new Error('disk'), { code: 'ENOSPC' })
    })
    await expect(addTo(queue)).rejects.toMatchObject({ code: 'state-unreadable' })
    disarm()
    const second = await addTo(queue)
    await queue.close()
    const again = await RequestQueue.open(dir)
    expect(again.list().map((one) => one.id)).toEqual([first, second])
    await again.close()
  })

  it('takes a torn end as absent and other damage as damage', async () => {
    const queue = await RequestQueue.open(dir)
    const first = await addTo(queue)
    await queue.close()
    const path = join(dir, 'queue.log')
    const good = readFileSync(path)
    const line = encodeRecord({ op: 'state', id: first, time: 'x', to: 'dropped' })
    for (const cut of [1, 20, line.length - 1]) {
      writeFileSync(path, Buffer.concat([good, Buffer.from(line.slice(0, cut))]))
      const torn = await RequestQueue.open(dir)
      expect(torn.get(first).state).toBe('queued')
      await torn.close()
      expect(readFileSync(path).equals(good)).toBe(true)
    }
    const bad = Buffer.concat([good.subarray(0, good.length - 5), Buffer.from('XXXX\n'), Buffer.from(line)])
    writeFileSync(path, bad)
    const damaged = await RequestQueue.open(dir)
    expect(damaged.damage.join()).toContain('line 2')
    await expect(addTo(damaged)).rejects.toMatchObject({ code: 'record-damaged' })
    await damaged.close()
    expect(readFileSync(path).equals(bad)).toBe(true)
  })

  it('has one owner at a time', async () => {
    const queue = await RequestQueue.open(dir)
    await expect(RequestQueue.open(dir)).rejects.toMatchObject({ code: 'state-locked' })
    await queue.close()
    await (await RequestQueue.open(dir)).close()
  })

  it('refuses a log of a newer version', async () => {
    writeFileSync(join(dir, 'queue.log'), encodeRecord({ op: 'open', version: 2 }))
    await expect(RequestQueue.open(dir)).rejects.toMatchObject({ code: 'state-newer' })
  })

  it('takes an approval back by an edit, and from whatever a later one leaves out', async () => {
    const queue = await RequestQueue.open(dir)
    const ids = [await addTo(queue, 'a'), await addTo(queue, 'b'), await addTo(queue, 'c')]
    await queue.approve(queue.summaries())
    await queue.edit(ids[0] ?? '', { target: '/x' })
    expect(queue.list().map(({ state }) => state)).toEqual(['queued', 'approved', 'approved'])
    await queue.approve(queue.summaries().slice(0, 2))
    expect(queue.list().map(({ state }) => state)).toEqual(['approved', 'approved', 'queued'])
    await queue.close()
    const again = await RequestQueue.open(dir)
    expect([again.damage, again.list().map(({ state }) => state)]).toEqual([
      [],
      ['approved', 'approved', 'queued'],
    ])
    await again.close()
  })

  it('holds no more headers and small bodies than memory is meant for', async () => {
    const limits = { ...DEFAULT_QUEUE_LIMITS, maxHeadBytes: 30_000 }
    const queue = await RequestQueue.open(dir, limits)
    const large = { ...HEAD, headers: [['accept', 'x'.repeat(10_000)]] as const }
    const add = async () => queue.add(large, await queue.spool(chunks('body')))
    await add()
    await add()
    await expect(add()).rejects.toMatchObject({ code: 'queue-full' })
    expect(queue.usage).toEqual({ requests: 2, bytes: 8 })
    await queue.close()
    const again = await RequestQueue.open(dir, limits)
    await expect((async () => again.add(large, await again.spool(chunks('body'))))()).rejects.toMatchObject({
      code: 'queue-full',
    })
    await again.close()
  })

  it('reads the beginning of a body for people', async () => {
    const queue = await RequestQueue.open(dir)
    const ids = [await addTo(queue, 'small body'), await addTo(queue, Buffer.alloc(100_000, 'y'))]
    expect((await queue.bodyStart(ids[0] ?? '', 5)).toString()).toBe('small')
    expect((await queue.bodyStart(ids[1] ?? '', 50_000)).equals(Buffer.alloc(50_000, 'y'))).toBe(true)
    expect((await queue.bodyStart(ids[1] ?? '', 1e9)).length).toBe(100_000)
    await queue.drop(ids[1] ?? '')
    expect((await queue.bodyStart(ids[1] ?? '', 1e9)).length).toBe(0)
    await queue.close()
  })

  it('removes bodies that no record knows', async () => {
    writeFileSync(join(dir, 'body-left'), 'x')
    await (await RequestQueue.open(dir)).close()
    expect(readdirSync(dir)).toEqual(['queue.log'])
  })

  it('gives an edit a new digest and approves only what was reviewed', async () => {
    const queue = await RequestQueue.open(dir)
    const id = await addTo(queue, 'before')
    const reviewed = queue.summaries()
    await queue.edit(id, { target: '/other', body: Buffer.from('after') })
    expect(queue.summaries()[0]?.sha256).not.toBe(reviewed[0]?.sha256)
    await expect(queue.approve(reviewed)).rejects.toMatchObject({ code: 'changed-since-review' })
    await queue.approve(queue.summaries())
    expect(queue.get(id).state).toBe('approved')
    // If that commit is undone, the next one sends it too: it stays part of what is reviewed.
    expect(queue.summaries().map((one) => one.id)).toEqual([id])
    await expect(queue.drop(id)).rejects.toMatchObject({ code: 'wrong-state' })
    expect((await queue.body(id)).toString()).toBe('after')
    await queue.close()
  })

  it('notices a body that is not what was queued', async () => {
    const queue = await RequestQueue.open(dir, DEFAULT_QUEUE_LIMITS)
    const id = await addTo(queue, Buffer.alloc(20_000))
    appendFileSync(join(dir, readdirSync(dir).find((name) => name.startsWith('body-')) ?? ''), 'x')
    await expect(queue.body(id)).rejects.toMatchObject({ code: 'record-damaged' })
    await queue.close()
  })
})

describe('replay', () => {
  const ports = (outcomes: SendOutcome[], sentIds: string[] = []): ReplayPorts => ({
    judge: async () => ({ ok: true }),
    send: async (request) => {
      sentIds.push(request.id)
      return outcomes.shift() ?? answered(200)
    },
  })
  const approved = async (count: number): Promise<[RequestQueue, string[]]> => {
    const queue = await RequestQueue.open(dir)
    const ids: string[] = []
    for (let n = 0; n < count; n++) ids.push(await addTo(queue, `${n}`))
    await queue.approve(queue.summaries())
    return [queue, ids]
  }
  const states = (queue: RequestQueue): string[] => queue.list().map((one) => one.state)

  it('sends in order and only what was approved', async () => {
    const [queue, ids] = await approved(3)
    await addTo(queue, 'later')
    const sent: string[] = []
    expect(await replay(queue, ports([], sent))).toEqual({ sent: ids, stopped: undefined, waiting: 0 })
    expect(sent).toEqual(ids)
    expect(states(queue)).toEqual(['sent', 'sent', 'sent', 'queued'])
    expect(await replay(queue, ports([], sent))).toMatchObject({ sent: [] })
    expect(sent).toEqual(ids)
    await queue.close()
  })

  it.each([
    [answered(500), 'failed'],
    [answered(404), 'failed'],
    [answered(302), 'failed'],
    [{ kind: 'not-sent', reason: 'refused' } as const, 'failed'],
    [{ kind: 'unknown', reason: 'reset' } as const, 'unknown'],
  ])('stops at the first that does not succeed: %o', async (outcome, state) => {
    const [queue, ids] = await approved(3)
    const sent: string[] = []
    const report = await replay(queue, ports([answered(201), outcome], sent))
    expect(report).toMatchObject({ sent: [ids[0]], stopped: { id: ids[1], state }, waiting: 1 })
    // By itself it goes no further, however often it is started.
    await replay(queue, ports([], sent))
    expect(sent).toEqual(ids.slice(0, 2))
    await queue.close()
  })

  it('goes on when a person resumes or skips', async () => {
    const [queue, ids] = await approved(4)
    await replay(queue, ports([{ kind: 'unknown', reason: 'reset' }]))
    await expect(resume(queue, ports([]), ids[1] ?? '')).rejects.toMatchObject({ code: 'wrong-state' })
    await resume(queue, ports([answered(200), answered(500)]), ids[0] ?? '')
    expect(states(queue)).toEqual(['sent', 'failed', 'approved', 'approved'])
    await skip(queue, ids[1] ?? '', 'not needed')
    await replay(queue, ports([]))
    expect(states(queue)).toEqual(['sent', 'skipped', 'sent', 'sent'])
    await queue.close()
  })

  it('asks rules and addresses again right before it sends', async () => {
    const [queue] = await approved(1)
    const sent: string[] = []
    const refused = { ...ports([], sent), judge: async () => ({ ok: false, reason: 'moved' }) as const }
    expect((await replay(queue, refused)).stopped?.reason).toContain('moved')
    expect(sent).toEqual([])
    await queue.close()
  })

  it('takes a send that throws as unknown', async () => {
    const [queue] = await approved(1)
    const throws = { ...ports([]), send: () => Promise.reject(new Error('defect')) }
    expect((await replay(queue, throws)).stopped).toMatchObject({ state: 'unknown', reason: 'defect' })
    await queue.close()
  })
})

describe('the states of a request', () => {
  it('are left for good once sent, dropped or skipped, and unknown is left by people only', () => {
    const ends: RequestState[] = ['sent', 'dropped', 'skipped']
    for (const state of ends) expect(REQUEST_MOVES[state]).toEqual([])
    expect(REQUEST_MOVES.approved).not.toContain('sent')
    expect(REQUEST_MOVES.queued).not.toContain('sending')
  })
})
