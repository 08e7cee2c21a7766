import type { Worker, WorkerOptions } from 'node:worker_threads'

/** Threads that threads start know it, too. */
const WANTED = 'puzzled: hold the young heap'

/** What threads need is loaded by the first one: a short command starts none. */
const threads = () => process.getBuiltinModule('node:worker_threads')

/**
 * For a process that lives for months and mostly waits. V8 lets the part of the heap where objects begin grow to 32 MB with
 * the first burst of work and keeps it, although a collection leaves nothing there. Held as it is, a burst of work takes
 * no longer.
 */
export function holdYoungHeap(): void {
  threads().setEnvironmentData(WANTED, true)
  hold()
}

/** V8 accepts no factor below 2 for a new heap and sets it back for all of them: so it is said again after each. */
const hold = (): void =>
  process.getBuiltinModule('node:v8').setFlagsFromString('--semi-space-growth-factor=1')

/** For a thread whose starter does not hear that it runs. */
export function holdAgain(): void {
  if (threads().getEnvironmentData(WANTED) === true) hold()
}

/** A thread of this process. */
export function startWorker(path: string, options?: WorkerOptions): Worker {
  const worker = new (threads().Worker)(path, options)
  return worker.once('online', holdAgain)
}
