import { closeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { errnoOf } from '../lib/errors.ts'

/** One descriptor at a time; the answer is what the kernel said to it, and comes when the kernel has said it. */
parentPort?.on('message', (fd: number) => {
  let answer = 'closed'
  try {
    closeSync(fd)
  } catch (error) {
    answer = errnoOf(error) ?? String(error)
  }
  parentPort?.postMessage(answer)
})
