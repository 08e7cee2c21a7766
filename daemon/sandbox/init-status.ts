import { Socket } from 'node:net'
import type { AgentAgain } from '../contract/branch.ts'
import { INIT_RECORD_BYTES, INIT_RECORDS } from '../contract/spawn.ts'
import { errnoName } from '../kernel/errno.ts'
import { signalName } from '../kernel/pidfd.ts'

/** What init said about the end of its agent. */
export interface AgentEnd {
  readonly code: number | null
  readonly signal: string | null
  /** Where it did not end by itself: that it could not be started again. */
  readonly why?: string
  readonly maxRssBytes: number
}

export interface InitStatus {
  /** The agent's first program runs. Never rejects: a failure is a value. */
  readonly started: Promise<{ pid: number } | { errnoName: string } | 'gone'>
  /** init is gone; null when it was killed before it could say how the agent ended. */
  readonly ended: Promise<AgentEnd | null>
  /** How often the agent was started after the first time, as far as is known. */
  readonly restarts: () => number
  /** For a start that failed: nothing is read any more, and the descriptor is closed. */
  stop(): void
}

/** Reads the records of `native/init.c`; the descriptor is closed with the pipe's end. That end is the exit event: nothing polls. */
export function watchInit(
  descriptor: number,
  restarting: (again: AgentAgain) => void = () => undefined,
): InitStatus {
  const started = deferred<Awaited<InitStatus['started']>>()
  const ended = deferred<AgentEnd | null>()
  const records = new Records(started.resolve, restarting)
  let pending = Buffer.alloc(0)
  const socket = new Socket({ fd: descriptor, readable: true, writable: false })
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk])
    for (; pending.length >= INIT_RECORD_BYTES; pending = pending.subarray(INIT_RECORD_BYTES))
      records.take(pending.readUInt32LE(0), pending.readInt32LE(4))
  })
  // A pipe that breaks says the same as one that ends: init is gone.
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    started.resolve('gone')
    ended.resolve(records.end())
  })
  return {
    started: started.promise,
    ended: ended.promise,
    restarts: () => Math.max(0, records.starts - 1),
    stop: () => void socket.destroy(),
  }
}

function deferred<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve }
}

/** What was said so far. */
class Records {
  starts = 0
  readonly #started: (how: { pid: number } | { errnoName: string }) => void
  readonly #restarting: (again: AgentAgain) => void
  #pauseMillis = 0
  #maxRssKiB = 0
  #failed: number | null = null
  #ended: number | null = null

  constructor(
    started: (how: { pid: number } | { errnoName: string }) => void,
    restarting: (again: AgentAgain) => void,
  ) {
    this.#started = started
    this.#restarting = restarting
  }

  take(kind: number, value: number): void {
    if (kind === INIT_RECORDS.started) {
      this.starts++
      this.#started({ pid: value })
    } else if (kind === INIT_RECORDS.execFailed) {
      this.#failed = value
      this.#started({ errnoName: errnoName(value) })
    } else if (kind === INIT_RECORDS.maxRssKiB) this.#maxRssKiB = Math.max(this.#maxRssKiB, value)
    else if (kind === INIT_RECORDS.ended) this.#ended = value
    else if (kind === INIT_RECORDS.pauseMillis) this.#pauseMillis = value
    else if (kind === INIT_RECORDS.again)
      this.#restarting({ ...statusOf(value), restart: this.starts, pauseMillis: this.#pauseMillis })
  }

  end(): AgentEnd | null {
    const maxRssBytes = this.#maxRssKiB * 1024
    if (this.#ended !== null) return { ...statusOf(this.#ended), maxRssBytes }
    if (this.#failed === null || this.starts === 0) return null
    const errno = errnoName(this.#failed)
    const why = `it could not be started again: ${errno}`
    return { code: errno === 'ENOENT' ? 127 : 126, signal: null, why, maxRssBytes }
  }
}

const CORE_DUMPED = 0x80

function statusOf(status: number): Pick<AgentEnd, 'code' | 'signal'> {
  const signal = status & 0x7f & ~CORE_DUMPED
  return {
    code: signal === 0 ? (status >> 8) & 0xff : null,
    signal: signal === 0 ? null : signalName(signal),
  }
}
