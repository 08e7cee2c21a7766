import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { parse, stringify } from 'yaml'
import { packageRoot } from '../../daemon/lib/assets.ts'
import { needs, program, root } from '../tier/needs.ts'
import { begin, REVIEWER, type Workplace, workplace } from './cli.ts'

const it = needs(root, program('curl'))

let place: Workplace
let server: Server
/** Idempotency keys in the order in which they arrived. */
let arrived: string[]
let answer: (n: number) => number
/** What happens outside while a request is being answered. */
let meanwhile: () => void

beforeEach(async () => {
  arrived = []
  answer = () => 201
  meanwhile = () => undefined
  server = createServer((request, response) => {
    arrived.push(String(request.headers['idempotency-key']))
    meanwhile()
    request.resume().on('end', () => response.writeHead(answer(arrived.length)).end('noted'))
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  place = workplace()
})
afterEach(async () => {
  place.remove()
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
})

/** A branch with two requests and a file, held for a person. */
async function held(): Promise<string> {
  const { port } = server.address() as AddressInfo
  const profile = parse(readFileSync(join(packageRoot(), 'policies/profiles/standard.yaml'), 'utf8'))
  const rule = {
    id: 'recorder',
    hosts: ['127.0.0.1'],
    ports: [port],
    methods: ['POST'],
    addresses: ['127.0.0.1/32'],
    class: 'queue',
    why: 'The server of this test.',
  }
  const network = { mode: 'gated', why: 'One server.', rules: [rule], replay: 'before-files' }
  const file = join(place.project, 'first.yaml')
  writeFileSync(file, stringify({ ...profile, name: 'first', network }))
  const post = (n: number): string =>
    `curl -sS -o /dev/null --noproxy "" -x http://127.0.0.1:3128 -d body${n} http://127.0.0.1:${port}/${n}`
  const script = `${post(1)} && ${post(2)} && echo new > made.txt`
  const { err } = await place.puzzlectl('run', '--profile', file, '--', 'sh', '-c', script)
  expect(err).toContain('2 queued requests')
  return readdirSync(join(place.state, 'branches'))[0] ?? ''
}

const json = async (...args: string[]) => JSON.parse((await place.puzzlectl(...args, '--json')).out)
const states = async (id: string): Promise<string[]> =>
  (JSON.parse((await place.puzzlectl('queue', 'ls', id, '--json')).out) as { state: string }[]).map(
    ({ state }) => state,
  )
const landed = (): boolean => existsSync(join(place.project, 'made.txt'))
const approve = (id: string) => place.asUser(REVIEWER, 'approve', id)

describe('requests that go before the files', () => {
  it('succeed, and then the files land', async () => {
    const id = await held()
    expect([arrived.length, landed()]).toEqual([0, false])
    meanwhile = () => expect(landed()).toBe(false)
    expect((await approve(id)).out).toContain('committed as')
    expect([arrived.length, landed()]).toEqual([2, true])
    expect(await states(id)).toEqual(['sent', 'sent'])
  })

  it('one that fails keeps the files away until a person has decided', async () => {
    const id = await held()
    answer = (n) => (n === 2 ? 500 : 201)
    const stopped = await approve(id)
    expect(stopped.out).toMatch(/held: no file was changed: request \w+ is failed: Answered 500/)
    expect([await states(id), landed()]).toEqual([['sent', 'failed'], false])
    // Neither a commit nor an approval goes on by itself.
    expect((await place.puzzlectl('commit', id)).status).not.toBe(0)
    expect((await approve(id)).status).not.toBe(0)
    expect([arrived.length, landed()]).toEqual([2, false])
    const failed = (await json('queue', 'ls', id))[1].id
    answer = () => 201
    expect((await place.asUser(REVIEWER, 'queue', 'resume', id, failed)).out).toContain('next commit')
    expect([await states(id), arrived.length]).toEqual([['sent', 'queued'], 2])
    await place.puzzlectl('review', '--judge', id)
    expect((await approve(id)).out).toContain('committed as')
    expect([arrived.length, landed()]).toEqual([3, true])
    expect(arrived[1]).toBe(arrived[2])
  })

  it('a base that changes meanwhile is a conflict: they stay sent, and are not sent again', async () => {
    const id = await held()
    meanwhile = () => writeFileSync(join(place.project, 'made.txt'), 'somebody else')
    const conflict = await approve(id)
    expect(conflict.out).toContain('conflict')
    expect((await json('show', id)).reason).toContain('2 of its requests had been sent by then')
    expect(readFileSync(join(place.project, 'made.txt'), 'utf8')).toBe('somebody else')
    expect(await states(id)).toEqual(['sent', 'sent'])
    meanwhile = () => undefined
    await place.puzzlectl('commit', id)
    await approve(id)
    expect(arrived.length).toBe(2)
  })

  it.each([
    ['requests-first.approved', ['approved', 'approved'], 0],
    ['replay.before-sending', ['approved', 'approved'], 0],
    ['replay.sending', ['unknown', 'approved'], 0],
    ['replay.answered', ['unknown', 'approved'], 1],
    ['replay.recorded', ['sent', 'approved'], 1],
    ['requests-first.sent', ['sent', 'sent'], 2],
  ] as const)('killed at %s: no file landed, and nothing is ever sent twice', async (name, after, count) => {
    const id = await held()
    const killed = begin(place.project, place.state, REVIEWER, ['approve', id], `${name}=kill`)
    expect((await killed.ended).status).toBeNull()
    expect((await json('show', id)).state).toBe('stopped')
    expect([await states(id), arrived.length, landed()]).toEqual([after, count, false])
    const unknown = (await json('queue', 'ls', id)).find(
      ({ state }: { state: string }) => state === 'unknown',
    )
    await place.puzzlectl('review', '--judge', id)
    const next = await approve(id)
    if (unknown !== undefined) {
      // Nobody can know whether it arrived: neither it nor anything behind it leaves before a person says so.
      expect(next.out).toContain('is unknown')
      expect([arrived.length, landed()]).toEqual([count, false])
      await place.asUser(REVIEWER, 'queue', 'skip', id, unknown.id)
      await place.puzzlectl('review', '--judge', id)
      await approve(id)
    }
    expect(landed()).toBe(true)
    expect(new Set(arrived).size).toBe(arrived.length)
    expect(await states(id)).toEqual([unknown === undefined ? 'sent' : 'skipped', 'sent'])
  })

  it.each(['commit.before-intent', 'commit.after-intent', 'commit.cleaned'])(
    'killed in the commit itself at %s: whatever was sent is not sent again',
    async (name) => {
      const id = await held()
      // The rehearsal has no intent, so the point is reached in the commit that follows the requests.
      const killed = begin(place.project, place.state, REVIEWER, ['approve', id], `${name}=kill`)
      expect((await killed.ended).status).toBeNull()
      const { state } = await json('show', id)
      expect([state, arrived.length]).toEqual([name === 'commit.before-intent' ? 'stopped' : 'committed', 2])
      expect(landed()).toBe(state === 'committed')
      if (state === 'stopped') await place.puzzlectl('commit', id)
      if (!landed()) await approve(id)
      expect([landed(), arrived.length]).toEqual([true, 2])
    },
  )
})
