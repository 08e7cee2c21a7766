import type { Worker, WorkerOptions } from 'node:worker_threads'

let wanted = false

/**
 * For a process that lives for months and mostly waits. V8 lets the part of the heap where objects begin grow to 32 MB with
 * the first burst of work and keeps it, although a collection leaves nothing there. Held as it is, a burst of work takes
 * no longer.
 */
export function holdYoungHeap(): void {
  wanted = true
  hold()
}

/** V8 accepts no factor below 2 for a new heap and sets it back for all of them: so it is said again after each. */
const hold = (): void =>
  process.getBuiltinModule('node:v8').setFlagsFromString('--semi-space-growth-factor=1')

/** A thread of this process. What threads need is loaded by the first one: a short command starts none. */
export function startWorker(path: string, options?: WorkerOptions): Worker {
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  const worker = new Worker(path, options)
  if (wanted) worker.once('online', hold)
  return worker
}
