import { parentPort, workerData } from 'node:worker_threads'
import { type DiffJob, type DiffMessage, failureOf, runDiff } from './diff-job.ts'

/** The diff reads every changed byte: it has a thread of its own, so that the daemon goes on answering. */
function post(message: DiffMessage): void {
  const transfer = message.kind === 'changes' ? [message.bytes.buffer as ArrayBuffer] : []
  parentPort?.postMessage(message, transfer)
}

try {
  runDiff(workerData as DiffJob, post)
} catch (error) {
  post(failureOf(error))
}
