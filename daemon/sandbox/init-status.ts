import { Socket } from 'node:net'
import { INIT_RECORD_BYTES, INIT_RECORDS } from '../contract/spawn.ts'
import { errnoName } from '../kernel/errno.ts'
import { signalName } from '../kernel/pidfd.ts'

/** What init said about the end of its agent. */
export interface AgentEnd {
  readonly code: number | null
  readonly signal: string | null
  readonly userMillis: number
  readonly systemMillis: number
  readonly maxRssBytes: number
}

export interface InitStatus {
  /** The agent's first program runs. Never rejects: a failure is a value. */
  readonly started: Promise<{ pid: number } | { errnoName: string } | 'gone'>
  /** init is gone; null when it was killed before it could say how the agent ended. */
  readonly ended: Promise<AgentEnd | null>
  /** For a start that failed: nothing is read any more, and the descriptor is closed. */
  stop(): void
}

/** Reads the records of `native/init.c`; the descriptor is closed with the pipe's end. That end is the exit event: nothing polls. */
export function watchInit(descriptor: number): InitStatus {
  const started = deferred<Awaited<InitStatus['started']>>()
  const ended = deferred<AgentEnd | null>()
  const values = new Map<number, number>()
  let pending = Buffer.alloc(0)
  const socket = new Socket({ fd: descriptor, readable: true, writable: false })
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk])
    for (; pending.length >= INIT_RECORD_BYTES; pending = pending.subarray(INIT_RECORD_BYTES)) {
      const kind = pending.readUInt32LE(0)
      const value = pending.readInt32LE(4)
      values.set(kind, value)
      if (kind === INIT_RECORDS.started) started.resolve({ pid: value })
      if (kind === INIT_RECORDS.execFailed) started.resolve({ errnoName: errnoName(value) })
    }
  })
  // A pipe that breaks says the same as one that ends: init is gone.
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    started.resolve('gone')
    ended.resolve(endOf(values))
  })
  return { started: started.promise, ended: ended.promise, stop: () => void socket.destroy() }
}

function deferred<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve }
}

const CORE_DUMPED = 0x80

function endOf(values: ReadonlyMap<number, number>): AgentEnd | null {
  const status = values.get(INIT_RECORDS.ended)
  if (status === undefined) return null
  const signal = status & 0x7f & ~CORE_DUMPED
  return {
    code: signal === 0 ? (status >> 8) & 0xff : null,
    signal: signal === 0 ? null : signalName(signal),
    userMillis: values.get(INIT_RECORDS.userMillis) ?? 0,
    systemMillis: values.get(INIT_RECORDS.systemMillis) ?? 0,
    maxRssBytes: (values.get(INIT_RECORDS.maxRssKiB) ?? 0) * 1024,
  }
}
