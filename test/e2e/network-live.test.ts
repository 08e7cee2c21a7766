import { appendFileSync } from 'node:fs'
import { afterEach, describe, expect } from 'vitest'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { type Begun, end, eventually, type Identity, WHO } from './private-bus.ts'

const { here, it } = onBus('each', program('curl'), program('bash'))

const followers: Begun[] = []
afterEach(async () => {
  for (const { child } of followers.splice(0)) await end(child, 'SIGKILL')
})

/** Everything that happens from here, as somebody with a terminal sees it. */
async function follow(who: Identity): Promise<() => readonly PuzzledEvent[]> {
  const follower = here.begin(who, 'events', '--follow', '--json')
  followers.push(follower)
  let text = ''
  follower.child.stdout?.on('data', (chunk) => {
    text += String(chunk)
  })
  const seen = (): PuzzledEvent[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as PuzzledEvent)
  // Until one of its own making is heard, it is not known to listen.
  await eventually(async () => {
    await here.puzzlectl(who, 'run', '--', 'true')
    if (seen().length === 0) throw new Error('not yet')
  })
  return seen
}

/** A denial that was told while the one who caused it still ran. */
async function denial(seen: () => readonly PuzzledEvent[], rule: string): Promise<PuzzledEvent> {
  return await eventually(async () => {
    const found = seen().find((event) => event.kind === 'denial' && event.rule === rule)
    if (found === undefined) throw new Error(`no denial by "${rule}" yet`)
    return found
  })
}

/** A write that the profile `standard` queues; nobody looks its host up before it is sent, which it never is here. */
const post = (name: string): string =>
  `head -c 600000 /dev/zero | curl -sS -w '|%{http_code}\\n' --data-binary @- https://api.github.com/${name}`
const held = (script: string): string[] => ['run', '--then', 'hold', '--', 'sh', '-c', script]

describe('a follower of events', () => {
  it('hears of a packet that went nowhere while the agent still runs', async () => {
    const seen = await follow(WHO.developer)
    const script = 'echo x > /dev/udp/198.51.100.7/9; sleep 300'
    const run = here.begin(WHO.developer, 'run', '--name', 'noisy', '--', 'bash', '-c', script)
    let over = false
    void run.exited.then(() => {
      over = true
    })
    expect(await denial(seen, 'udp')).toMatchObject({
      layer: 'nft',
      subject: '1 packets',
      message: expect.stringContaining('UDP'),
    })
    expect(over).toBe(false)
    await here.puzzlectl(WHO.developer, 'signal', 'noisy', 'KILL')
    expect(await run.exited).not.toBe(0)
  })
})

describe('a queue that is full', () => {
  it('refuses with a reason, tells the operator, and is nothing to anybody else', async () => {
    await end(here.daemon, 'SIGTERM')
    appendFileSync(here.config, 'queues: { per_user: 1M, all: 8M }\n')
    await here.start()
    const seen = await follow(WHO.root)
    const full = await here.puzzlectl(WHO.developer, ...held(`${post('1')}; ${post('2')}`))
    const [first, second] = full.out.split(/(?<=\|\d{3})\n/)
    expect(first).toMatch(/"queued":true[\s\S]*\|202$/)
    const problem = JSON.parse(second?.replace(/\|429$/, '') ?? '') as Record<string, unknown>
    expect(problem).toMatchObject({ status: 429, rule: 'queue-full' })
    expect(String(problem.detail)).toContain('hold at most 1048576 bytes together')
    expect(String(problem.help)).toContain('queues.per_user')
    expect(await denial(seen, 'queue-full')).toMatchObject({
      layer: 'proxy',
      subject: 'POST https://api.github.com:443/2',
    })
    // Somebody else has a quota of their own, and the daemon goes on.
    const other = await here.puzzlectl(WHO.colleague, ...held(post('3')))
    expect(other.out).toMatch(/"queued":true[\s\S]*\|202/)
    // What is there is still there, and room that is made can be used.
    const [branch] = JSON.parse((await here.puzzlectl(WHO.developer, 'ls', '--json')).out) as { id: string }[]
    await here.puzzlectl(WHO.developer, 'discard', branch?.id ?? '')
    const again = await here.puzzlectl(WHO.developer, ...held(post('4')))
    expect(again.out).toMatch(/\|202/)
  })
})
