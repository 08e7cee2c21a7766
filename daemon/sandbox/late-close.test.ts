import { EventEmitter } from 'node:events'
import { closeSync, fstatSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LateClose } from './late-close.ts'

/** A thread that answers when the test says so. */
class Thread extends EventEmitter {
  readonly asked: number[] = []
  ended = false
  postMessage(fd: number): void {
    this.asked.push(fd)
  }
  answer(): void {
    this.emit('message', 'closed')
  }
  unref(): void {
    // Nothing here keeps the process.
  }
  async terminate(): Promise<number> {
    this.ended = true
    return 0
  }
}

let threads: Thread[]
let folder: string
const opened: number[] = []
const file = (): number => {
  const fd = openSync(join(folder, 'file'), 'r')
  opened.push(fd)
  return fd
}
const late = (): LateClose =>
  new LateClose(() => {
    const thread = new Thread()
    threads.push(thread)
    return thread
  })

beforeEach(() => {
  vi.useFakeTimers()
  threads = []
  folder = mkdtempSync(join(tmpdir(), 'late-'))
  writeFileSync(join(folder, 'file'), '')
})
afterEach(() => {
  vi.useRealTimers()
  for (const fd of opened.splice(0)) closeSync(fd)
  rmSync(folder, { recursive: true })
})

describe('what callers handed over', () => {
  it('is closed at once where that cannot take long, and no thread is begun', () => {
    const fd = openSync('/dev/null', 'r')
    late().close([fd])
    expect(() => fstatSync(fd)).toThrow(/EBADF/)
    expect(threads).toEqual([])
  })

  it('is closed by one thread, one after the other, which ends when there is nothing to do', () => {
    const [one, two, closing] = [file(), file(), late()]
    closing.close([one, two])
    expect(threads.map(({ asked }) => asked)).toEqual([[one]])
    threads[0]?.answer()
    expect(threads.map(({ asked }) => asked)).toEqual([[one, two]])
    threads[0]?.answer()
    vi.advanceTimersByTime(4_900)
    expect(threads[0]?.ended).toBe(false)
    vi.advanceTimersByTime(200)
    expect(threads[0]?.ended).toBe(true)
    closing.close([one])
    expect(threads).toHaveLength(2)
  })

  it('does not wait behind what takes long, up to some threads; then no more is taken', () => {
    const [fd, closing] = [file(), late()]
    for (let round = 0; round < 10; round++) {
      closing.close([fd])
      vi.advanceTimersByTime(1_100)
    }
    expect(threads.map(({ asked }) => asked.length)).toEqual(new Array(8).fill(1))
    closing.demandRoom()
    closing.close(new Array(256).fill(fd))
    expect(() => closing.demandRoom()).toThrow('wait to be closed')
    threads[3]?.answer()
    expect(threads[3]?.asked).toHaveLength(2)
  })

  it('is closed by another thread where one fails', () => {
    const [fd, closing] = [file(), late()]
    closing.close([fd])
    threads[0]?.emit('error', new Error('lost'))
    closing.close([fd])
    expect(threads.map(({ asked }) => asked)).toEqual([[fd], [fd]])
  })
})
