import { createHash } from 'node:crypto'
import { workerData } from 'node:worker_threads'
import { holdAgain } from '../lib/lean-heap.ts'
import { Lane, type SharedLane } from './hash-lane.ts'

/** Hashes one content after the other, piece by piece as they are given, until it is ended. */
function run(lane: Lane): void {
  holdAgain()
  let hash = createHash('sha256')
  let zeros: Buffer | undefined
  for (let number = 0; ; number++) {
    const length = lane.awaitGiven(number)
    if (length === 0) {
      lane.end(hash.digest())
      hash = createHash('sha256')
    } else if (length > 0) hash.update(lane.slot(number).subarray(0, length))
    else {
      zeros ??= Buffer.alloc(lane.slot(0).length)
      for (let left = -length; left > 0; left -= zeros.length)
        hash.update(zeros.subarray(0, Math.min(zeros.length, left)))
    }
    lane.take(number)
  }
}

run(new Lane(workerData as SharedLane))
