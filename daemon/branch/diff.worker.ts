import { parentPort, workerData } from 'node:worker_threads'
import { PuzzledError } from '../lib/errors.ts'
import { type DiffJob, type DiffMessage, runDiff } from './diff-job.ts'

/** The diff reads every changed byte: it has a thread of its own, so that the daemon goes on answering. */
function post(message: DiffMessage): void {
  const transfer = message.kind === 'changes' ? [message.bytes.buffer as ArrayBuffer] : []
  parentPort?.postMessage(message, transfer)
}

try {
  runDiff(workerData as DiffJob, post)
} catch (error) {
  post({ kind: 'failed', error: describe(error) })
}

function describe(error: unknown): Extract<DiffMessage, { kind: 'failed' }>['error'] {
  if (!(error instanceof PuzzledError))
    return { code: 'kernel-refused', message: error instanceof Error ? error.message : String(error) }
  return {
    code: error.code,
    message: error.message,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.data === undefined ? {} : { data: error.data }),
  }
}
