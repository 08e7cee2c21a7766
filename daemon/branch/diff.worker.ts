import { parentPort, workerData } from 'node:worker_threads'
import { type DiffJob, type DiffMessage, failureOf, runDiff } from './diff-job.ts'
import { SecondWalker } from './second-walker.ts'

/** The diff reads every changed byte: it has a thread of its own, so that the daemon goes on answering. */
function post(message: DiffMessage): void {
  parentPort?.postMessage(message)
}

try {
  // This thread ends when it is through, and takes the second with it.
  runDiff(workerData as DiffJob, post, new SecondWalker())
} catch (error) {
  post(failureOf(error))
}
