import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Meter, type MeterPorts } from './meter.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An agent that rests, a clock that is moved by hand, and what the meter did. */
function resting() {
  const log: string[] = []
  const state = { time: 0, quiet: true, cpu: 1, broken: false }
  const ports: MeterPorts = {
    readings: async () => {
      log.push('read')
      if (state.broken) throw new Error('unreadable')
      return { cpu: state.cpu }
    },
    quiet: () => {
      if (state.broken) throw new Error('unreadable')
      return state.quiet
    },
    freeze: async () => void log.push('freeze'),
    thaw: async () => undefined,
    kill: async () => undefined,
    announce: ({ budget, percent }) => void log.push(`${budget} ${percent}`),
    exceeded: () => undefined,
    failed: () => void log.push('failed'),
    now: () => state.time,
  }
  const pass = async (seconds: number): Promise<string[]> => {
    for (let quarter = 0; quarter < seconds * 4; quarter++) {
      state.time += 250
      await vi.advanceTimersByTimeAsync(250)
    }
    return log.splice(0)
  }
  return { ports, state, pass }
}

it('an agent that rests is read once, and when its wall clock reaches a threshold', async () => {
  const { ports, pass } = resting()
  const meter = new Meter({ wall: 10, cpu: 5 }, 'freeze', ports)
  meter.start()
  expect(await pass(8.75)).toEqual(['read'])
  expect(await pass(0.5)).toEqual(['read', 'wall 90'])
  expect(await pass(0.5)).toEqual([])
  expect(await pass(0.5)).toEqual(['read', 'wall 100', 'freeze'])
  await meter.stop()
})

it('one that runs again is read at once, as it was before', async () => {
  const { ports, state, pass } = resting()
  const meter = new Meter({ cpu: 5 }, 'freeze', ports)
  meter.start()
  expect(await pass(60)).toEqual(['read'])
  Object.assign(state, { quiet: false, cpu: 5 })
  expect(await pass(0.25)).toEqual(['read', 'cpu 90', 'cpu 100', 'freeze'])
  await meter.stop()
})

it('one of which nobody knows whether it rests is stopped as before', async () => {
  const { ports, state, pass } = resting()
  const meter = new Meter({ cpu: 5 }, 'freeze', ports)
  meter.start()
  expect(await pass(1)).toEqual(['read'])
  state.broken = true
  expect(await pass(0.25)).toEqual(['read', 'failed', 'freeze'])
  await meter.stop()
})

it('a limit that is extended is looked at anew', async () => {
  const { ports, pass } = resting()
  const meter = new Meter({ wall: 10 }, 'freeze', ports)
  meter.start()
  expect(await pass(5)).toEqual(['read'])
  await meter.extend('wall', 10)
  expect(await pass(12.5)).toEqual(['read'])
  expect(await pass(0.5)).toEqual(['read', 'wall 90'])
  await meter.stop()
})
