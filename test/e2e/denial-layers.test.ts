import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { DenialRow } from '../../daemon/contract/denial.ts'
import { DENIALS_PATH } from '../../daemon/contract/denial.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { parseOpenMetrics } from '../metrics/openmetrics.ts'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { type Begun, end, eventually, WHO } from './private-bus.ts'

/**
 * What an agent is refused comes out everywhere in the same words: as an event, in `show`, in the list that the agent
 * itself can read, and in the metrics. One test for each layer that this tier can have; those that need another kernel or
 * filesystem are in test/root (kernel-denials, denial-quota).
 */
const { here, it } = onBus('all', program('curl'), program('bash'))
const { developer, reviewer, root } = WHO

let follower: Begun | undefined
let heard = ''
beforeAll(async () => {
  if (here.config === undefined) return
  follower = here.begin(root, 'events', '--follow', '--json')
  follower.child.stdout?.on('data', (chunk) => {
    heard += String(chunk)
  })
  // Until one of its own making is heard, it is not known to listen.
  await eventually(async () => {
    await here.puzzlectl(developer, 'run', '--', 'true')
    if (events().length === 0) throw new Error('not yet')
  })
})
afterAll(async () => {
  if (follower !== undefined) await end(follower.child, 'SIGKILL')
})

const events = (): PuzzledEvent[] =>
  heard
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as PuzzledEvent)

/** Waits for a line of that layer, prints all of them, and leaves something to hold. */
const reading = (layer: string): string =>
  `until grep -q '"layer":"${layer}"' ${DENIALS_PATH}; do sleep 0.1; done; cat ${DENIALS_PATH}; echo > x-${layer}`

const rowsIn = (text: string): DenialRow[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{"time"'))
    .map((line) => JSON.parse(line) as DenialRow)

interface Expected {
  layer: string
  rule: unknown
  subject: unknown
  /** Null: nothing would help. */
  help: unknown
}

/** The same row for the agent, for followers, and for people. */
async function expectTold(name: string, byAgent: string, expected: Expected): Promise<void> {
  const { layer, help, ...told } = expected
  const row = rowsIn(byAgent).find((one) => one.layer === layer)
  expect(row, byAgent).toMatchObject({ message: expect.stringMatching(/\S/), ...told })
  expect(row?.help ?? null).toEqual(help)
  const shown = JSON.parse((await here.puzzlectl(developer, 'show', name, '--json')).out) as {
    id: string
    denials: DenialRow[]
  }
  expect(shown.denials).toContainEqual(row)
  const event = await eventually(async () => {
    const found = events().find(
      (one) => one.kind === 'denial' && one.branch === shown.id && one.layer === layer,
    )
    if (found === undefined) throw new Error(`no event of ${layer}`)
    return found
  })
  expect(event).toEqual({ kind: 'denial', branch: shown.id, ...row })
  const { out } = await here.puzzlectl(developer, 'show', name)
  expect(out.replace(/\s+/g, ' ')).toContain(
    `blocked ${layer} ${row?.rule}: ${row?.subject}: ${row?.message}`,
  )
  if (row?.help !== undefined) expect(out.replace(/\s+/g, ' ')).toContain(row.help)
}

describe('what the network refuses', () => {
  it.each([
    {
      layer: 'dns',
      rule: 'no-rule',
      subject: 'nowhere.invalid',
      help: expect.stringContaining('nowhere.invalid'),
      act: 'getent hosts nowhere.invalid',
    },
    {
      layer: 'proxy',
      rule: 'no-rule',
      subject: expect.stringContaining('http://elsewhere.example'),
      help: expect.stringContaining('elsewhere.example'),
      act: 'curl -s -m 20 -o /dev/null http://elsewhere.example/',
    },
    {
      layer: 'nft',
      rule: 'udp',
      subject: expect.stringMatching(/^\d+ packets$/),
      help: null,
      act: 'echo x > /dev/udp/198.51.100.7/9',
    },
  ])('by $layer is told with its rule and what would help', async ({ act, ...expected }) => {
    const script = `${act}; ${reading(expected.layer)}`
    const run = ['run', '--then', 'hold', '--name', expected.layer, '--', 'bash', '-c', script]
    await expectTold(expected.layer, (await here.puzzlectl(developer, ...run)).out, expected)
  })
})

describe('what is used up, and what may not land', () => {
  it('a budget: the agent reads why it stood still once it has more', async () => {
    const words = ['--then', 'hold', '--name', 'budget', '--budget', 'wall=1s']
    const run = here.begin(developer, 'run', ...words, '--', 'sh', '-c', reading('budget'))
    await eventually(async () => {
      const told = events().some((event) => event.kind === 'denial' && event.layer === 'budget')
      if (!told) throw new Error('not yet')
    })
    // More is for others to give.
    expect((await here.puzzlectl(developer, 'budget', 'budget', 'wall=1h')).status).toBe(77)
    expect((await here.puzzlectl(reviewer, 'budget', 'budget', 'wall=1h')).err).toBe('')
    const { out } = await run.ended
    await expectTold('budget', out, {
      ...{ layer: 'budget', rule: 'budget', subject: 'the agent' },
      help: expect.stringMatching(/^puzzlectl budget \w+ KIND=AMOUNT/),
    })
  })

  it('the policy: whoever goes on in the branch reads what was denied', async () => {
    await here.puzzlectl(developer, 'run', '--name', 'policy', '--', 'mkfifo', 'pipe')
    const { out } = await here.puzzlectl(developer, 'exec', 'policy', '--', 'cat', DENIALS_PATH)
    await expectTold('policy', out, {
      ...{ layer: 'policy', rule: expect.stringMatching(/\w/), subject: expect.stringMatching(/\/pipe$/) },
      help: null,
    })
  })
})

it('and every one of them is counted by its layer', async () => {
  const socket = join(dirname(here.config), 'run', 'metrics.sock')
  const { out } = await here.puzzlectl(root, 'metrics', '--socket', socket)
  const samples = parseOpenMetrics(out).get('puzzled_denials')?.samples ?? []
  for (const layer of ['dns', 'proxy', 'nft', 'budget', 'policy']) {
    const counted = samples.find(({ labels }) => labels.layer === layer)?.value ?? 0
    expect([layer, counted > 0]).toEqual([layer, true])
  }
})
