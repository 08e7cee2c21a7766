import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Screen, tellProgress, withProgress } from './progress.ts'
import { progressLine } from './render/progress.ts'

describe('a line of progress', () => {
  it('moves, counts, and never fills the screen', () => {
    expect(progressLine('comparing', 1000, 80)).toBe('[     ====           ] comparing, 1 s')
    expect(progressLine('comparing', 3200, 80)).toBe('[                ====] comparing, 3 s')
    expect(progressLine('comparing', 4200, 80)).toBe('[           ====     ] comparing, 4 s')
    expect(progressLine('committing', 1000, 80, [5, 20])).toBe('[=====               ] committing, 25 %, 1 s')
    expect(progressLine('committing', 1000, 80, [20, 20])).toBe(`[${'='.repeat(20)}] committing, 100 %, 1 s`)
    expect(progressLine('comparing', 1000, 80, [1200, null])).toMatch(/\] comparing, 1200 paths, 1 s$/)
    expect(progressLine('removing', 1000, 80, [0, 0])).toMatch(/\] removing, 1 s$/)
    for (const columns of [0, 1, 10, 30])
      expect(progressLine('comparing', 5000, columns).length).toBeLessThan(Math.max(1, columns))
  })
})

describe('progress', () => {
  let drawn: string[]
  const screen = (isTTY: boolean): Screen => ({ isTTY, columns: 80, write: (text) => drawn.push(text) })
  beforeEach(() => {
    drawn = []
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'performance'] })
  })
  afterEach(() => vi.useRealTimers())

  const work = async (milliseconds: number, on: Screen): Promise<string> => {
    const done = withProgress(
      'comparing',
      new Promise<string>((resolve) => setTimeout(() => resolve('done'), milliseconds)),
      on,
    )
    await vi.advanceTimersByTimeAsync(milliseconds)
    return done
  }

  it('is not shown for what is done within a second', async () => {
    expect(await work(900, screen(true))).toBe('done')
    expect(drawn).toEqual([])
  })

  it('is shown for longer work, and taken away at its end', async () => {
    expect(await work(2000, screen(true))).toBe('done')
    expect(drawn[0]).toMatch(/^\r\[ *={4} *\] comparing, 1 s\u001b\[K$/)
    expect(drawn.at(-1)).toBe('\r\u001b[K')
  })

  it('is drawn from the middle of work that lets no timer run', async () => {
    const busy = async (): Promise<void> => {
      await Promise.resolve()
      for (let done = 0; done <= 30; done++) {
        await vi.advanceTimersByTimeAsync(100)
        tellProgress(done, 30)
      }
    }
    await withProgress('committing', busy, screen(true))
    expect(drawn.some((line) => /=+ *\] committing, [3-9]\d %, [123] s/.test(line))).toBe(true)
    expect(drawn.at(-1)).toBe('\r\u001b[K')
    tellProgress(1, 2)
    expect(drawn.at(-1)).toBe('\r\u001b[K')
  })

  it('is shown to nobody where there is no terminal', async () => {
    await work(5000, screen(false))
    expect(drawn).toEqual([])
  })

  it('is taken away when the work fails', async () => {
    vi.useRealTimers()
    const failing = sleep(1300).then(() => Promise.reject(new Error('no')))
    await expect(withProgress('comparing', failing, screen(true))).rejects.toThrow('no')
    expect(drawn.at(-1)).toBe('\r\u001b[K')
  })
})
