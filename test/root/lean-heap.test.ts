import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect } from 'vitest'
import { hashLane } from '../../daemon/branch/hash-lane.ts'
import { workerPath } from '../../daemon/lib/assets.ts'
import { holdYoungHeap } from '../../daemon/lib/lean-heap.ts'
import { needs, root } from '../tier/needs.ts'

const it = needs(root)

/** Says how large its young heap is before and after a burst in which much lives on for a while. */
const BURST = `
const { parentPort } = require('node:worker_threads')
const young = () => require('node:v8').getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
parentPort.once('message', () => {
  const before = young()
  const kept = []
  for (let n = 0; n < 3_000_000; n++) kept[n % 200_000] = { n }
  parentPort.postMessage([before, young()])
})`

/** Starts another one and does not hear of it. */
const DEAF = `
const { Worker, workerData } = require('node:worker_threads')
new Worker(workerData.path, { workerData: workerData.shared })
Atomics.wait(new Int32Array(workerData.wait), 0, 0)`

/** How the young heap of a thread grows by a burst after a thread has started another one. */
async function growth(): Promise<number> {
  const bursting = new Worker(BURST, { eval: true })
  await once(bursting, 'online')
  const lane = hashLane(4096)
  const wait = new SharedArrayBuffer(4)
  const data = { path: workerPath('hash'), shared: lane.shared, wait }
  const deaf = new Worker(DEAF, { eval: true, workerData: data })
  await once(deaf, 'online')
  lane.give(0, 1)
  expect(lane.waitTaken(1, 30_000)).toBe(true)
  bursting.postMessage('now')
  const [[before, after]] = (await once(bursting, 'message')) as [[number, number]]
  await Promise.all([bursting.terminate(), deaf.terminate()])
  return after / before
}

it('a thread that a thread starts does not let the young heap grow', async () => {
  expect(await growth()).toBeGreaterThan(1.5)
  holdYoungHeap()
  expect(await growth()).toBeLessThan(1.5)
})
