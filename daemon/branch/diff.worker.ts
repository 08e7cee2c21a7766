import { parentPort, workerData } from 'node:worker_threads'
import { type DiffJob, type DiffMessage, failureOf, runDiff } from './diff-job.ts'

/** The diff reads every changed byte: it has a thread of its own, so that the daemon goes on answering. */
function post(message: DiffMessage): void {
  parentPort?.postMessage(message)
}

try {
  runDiff(workerData as DiffJob, post)
} catch (error) {
  post(failureOf(error))
}
