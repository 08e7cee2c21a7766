import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { PuzzledEvent } from '../contract/events.ts'
import { type Dropping, DropWatch } from './drop-watch.ts'

let events: PuzzledEvent[]
let counted: number
let watch: DropWatch
beforeEach(() => {
  vi.useFakeTimers()
  events = []
  counted = 0
  watch = new DropWatch((event) => events.push(event), {
    denied: (_layer, times = 1) => {
      counted += times
    },
    served: () => undefined,
  })
})
afterEach(() => vi.useRealTimers())

const dropping = (counts: Record<string, number>): Dropping => ({
  dropped: () =>
    Object.entries(counts).map(([rule, count]) => ({
      layer: 'nft',
      subject: 'packets',
      rule,
      message: `Dropped: ${rule}`,
      help: undefined,
      first: '',
      count,
    })),
})
const told = (): string[] =>
  events.map((event) => (event.kind === 'denial' ? `${event.subject} ${event.rule}` : event.kind))

it('tells what was dropped while the branch runs, what is new of it, and the rest at the end', () => {
  const counts = { udp: 0, port: 0 }
  watch.begin('b', dropping(counts))
  vi.advanceTimersByTime(5_000)
  expect(told()).toEqual([])
  counts.udp = 3
  vi.advanceTimersByTime(1_000)
  expect(told()).toEqual(['3 packets udp'])
  vi.advanceTimersByTime(5_000)
  Object.assign(counts, { udp: 5, port: 1 })
  watch.end('b')
  expect(told()).toEqual(['3 packets udp', '2 packets udp', '1 packets port'])
  expect(counted).toBe(6)
  expect(vi.getTimerCount()).toBe(0)
})

it('a loop of packets is told some times a minute, and nothing of it is lost', () => {
  const counts = { udp: 0 }
  watch.begin('b', dropping(counts))
  for (let second = 0; second < 50; second++) {
    counts.udp += 10
    vi.advanceTimersByTime(1_000)
  }
  expect(events.length).toBeLessThanOrEqual(13)
  watch.end('b')
  expect(counted).toBe(500)
})

it('an agent that uses no processor is hardly looked at, and at once when it does', () => {
  let looks = 0
  let cpu = 1
  const counts = { udp: 0 }
  const network = dropping(counts)
  const looking: Dropping = {
    dropped: () => {
      looks++
      return network.dropped()
    },
  }
  watch.begin('b', looking, () => cpu)
  vi.advanceTimersByTime(121_000)
  expect(looks).toBe(3)
  counts.udp = 2
  cpu = 2
  vi.advanceTimersByTime(1_000)
  expect(told()).toEqual(['2 packets udp'])
  counts.udp = 3
  watch.end('b')
  expect(told()).toEqual(['2 packets udp', '1 packets udp'])
})

it('a count that cannot be read is a warning, once, and the others go on', () => {
  const counts = { udp: 0 }
  watch.begin('broken', {
    dropped: () => {
      throw new Error('gone')
    },
  })
  watch.begin('b', dropping(counts))
  vi.advanceTimersByTime(3_000)
  counts.udp = 1
  vi.advanceTimersByTime(1_000)
  expect(told()).toEqual(['warning', '1 packets udp'])
  watch.end('broken')
  watch.end('b')
})
