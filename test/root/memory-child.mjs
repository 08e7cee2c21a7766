// Compares and commits on the built workers, each with a heap of a given size, and says what the process took.
import { readFileSync } from 'node:fs'
import { deserialize } from 'node:v8'
import { Worker } from 'node:worker_threads'

const [folder, file, heap] = process.argv.slice(2)
const { diff, land } = deserialize(readFileSync(file))
const options = { resourceLimits: { maxOldGenerationSizeMb: Number(heap), maxYoungGenerationSizeMb: 8 } }

function run(name, workerData, receive) {
  return new Promise((resolve, reject) => {
    const thread = new Worker(`${folder}/${name}.js`, { ...options, workerData })
    thread.on('message', (message) => receive(message, thread, resolve, reject))
    thread.on('error', reject)
    if (name === 'commit') thread.postMessage({ call: 1, kind: 'call', verb: 'land', argument: land })
  })
}

land.packed = []
land.filesDigest = land.job.digest = await run('diff', diff, (message, _thread, resolve, reject) => {
  if (message.kind === 'changes') land.packed.push(message.bytes)
  if (message.kind === 'failed') reject(new Error(message.error.message))
  if (message.kind === 'done') resolve(message.digest)
})
const landed = await run('commit', undefined, (message, thread, resolve, reject) => {
  if (message.kind === 'ask') thread.postMessage({ call: 1, kind: 'answer', error: null })
  if (message.kind === 'error') reject(new Error(message.error.message))
  if (message.kind === 'result') void thread.terminate().then(() => resolve(message.value))
})
const peak = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024
console.log(JSON.stringify({ files: landed.files, peak }))
