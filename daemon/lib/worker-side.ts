import { parentPort } from 'node:worker_threads'
import { everySoOften, type TellProgress } from './progress.ts'
import { decodeError, type ErrorText, encodeError, type FromWorker, type ToWorker } from './worker-link.ts'

/** Asks the thread that made the call, and waits. Throws what it threw. */
export type Ask = (what: string, argument: string) => Promise<void>
export type Verbs = Readonly<Record<string, (argument: never, ask: Ask, tell: TellProgress) => unknown>>

/** A message between threads for each of a hundred thousand files would cost more than the files. */
const TELL_MS = 100

/** Runs in the worker: one call after the other, in the order in which they came. */
export function serveCalls(verbs: Verbs): void {
  const port = parentPort
  if (port === null) throw new Error('This file is a worker')
  const waiting = new Map<number, (error: ErrorText | null) => void>()
  let tail: Promise<void> = Promise.resolve()
  const send = (message: FromWorker): void => port.postMessage(message)

  const run = async (call: number, verb: string, argument: unknown): Promise<void> => {
    const ask: Ask = async (what, about) => {
      const error = await new Promise<ErrorText | null>((resolve) => {
        waiting.set(call, resolve)
        send({ call, kind: 'ask', what, argument: about })
      })
      waiting.delete(call)
      if (error !== null) throw decodeError(error)
    }
    const told: TellProgress = (done, total) => send({ call, kind: 'told', done, total })
    const tell = everySoOften(told, TELL_MS, () => performance.now())
    try {
      const work = verbs[verb]
      if (work === undefined) throw new Error(`There is no verb "${verb}"`)
      send({ call, kind: 'result', value: await work(argument as never, ask, tell) })
    } catch (error) {
      send({ call, kind: 'error', error: encodeError(error) })
    }
  }

  port.on('message', (message: ToWorker) => {
    if (message.kind === 'answer') waiting.get(message.call)?.(message.error)
    else tail = tail.then(() => run(message.call, message.verb, message.argument))
  })
}
