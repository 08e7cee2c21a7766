import { closeSync } from 'node:fs'
import { isNamelessPipe } from '../kernel/pipe.ts'
import { isCharacterDevice, statKnownFd } from '../kernel/statx.ts'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { startWorker } from '../lib/lean-heap.ts'

/** A thread that is busy for so long waits for what a caller has arranged. */
const STUCK_MILLIS = 1_000
const MOST_THREADS = 8
/** Callers come in bursts, and a thread takes a few megabytes. */
const IDLE_MILLIS = 5_000
const MOST_WAITING = 256

/** What is needed of a thread; a test has its own. */
export interface Closer {
  on(event: 'message' | 'error', heard: () => void): unknown
  postMessage(fd: number): void
  unref(): void
  terminate(): Promise<unknown>
}

/**
 * Closes descriptors that callers handed over, on threads of their own. To close the last copy of a socket can take as
 * long as its owner says (`SO_LINGER`, also of one that waits in it to be received), and everybody's daemon must not wait.
 */
export class LateClose {
  readonly #start: () => Closer
  readonly #waiting: number[] = []
  #idle: Closer[] = []
  #threads = 0
  #help: NodeJS.Timeout | undefined
  #rest: NodeJS.Timeout | undefined

  // Node complains of a thread that closes what another one has opened.
  constructor(start: () => Closer = () => startWorker(workerPath('close'), { trackUnmanagedFds: false })) {
    this.#start = start
  }

  close(fds: Iterable<number>): void {
    for (const fd of fds)
      if (isQuick(fd)) closeSync(fd)
      else this.#waiting.push(fd)
    this.#work()
  }

  /** To be asked before more is taken: what is not closed stays open here. */
  demandRoom(): void {
    if (this.#waiting.length >= MOST_WAITING)
      throw new PuzzledError('kernel-refused', 'Too many descriptors of callers wait to be closed', {
        hint: 'Sockets that linger hold them; put a pipe in between: puzzlectl … | cat',
      })
  }

  #work(): void {
    for (let fd = this.#waiting[0]; fd !== undefined; fd = this.#waiting[0]) {
      const closer = this.#idle.pop() ?? (this.#threads === 0 ? this.#begin() : undefined)
      if (closer === undefined) {
        this.#callForHelp()
        return
      }
      this.#waiting.shift()
      closer.postMessage(fd)
    }
  }

  #begin(): Closer {
    const closer = this.#start()
    this.#threads++
    closer.on('message', () => {
      this.#idle.push(closer)
      clearTimeout(this.#help)
      this.#help = undefined
      this.#work()
      clearTimeout(this.#rest)
      this.#rest = setTimeout(() => this.#endIdle(), IDLE_MILLIS).unref()
    })
    // What it was about to close stays open; the next one gets a new thread.
    closer.on('error', () => {
      this.#threads--
    })
    // Nothing is lost with the process: it closes everything.
    closer.unref()
    return closer
  }

  /** One more thread when none has become free meanwhile. */
  #callForHelp(): void {
    if (this.#help !== undefined || this.#threads >= MOST_THREADS) return
    this.#help = setTimeout(() => {
      this.#help = undefined
      this.#idle.push(this.#begin())
      this.#work()
    }, STUCK_MILLIS).unref()
  }

  #endIdle(): void {
    for (const closer of this.#idle) void closer.terminate()
    this.#threads -= this.#idle.length
    this.#idle = []
  }
}

/** A pipe of the kernel's or a device: nobody else has a say in how long that takes. */
function isQuick(fd: number): boolean {
  const stat = statKnownFd(fd)
  return isCharacterDevice(stat) || isNamelessPipe(stat)
}

/** Of this process: its descriptors are one table. */
export const lateClose = new LateClose()
