// Runs one call on the built commit worker and says what came of it. Killed by a failpoint, it says nothing.
import { readFileSync } from 'node:fs'
import { deserialize } from 'node:v8'
import { Worker } from 'node:worker_threads'

const [worker, file] = process.argv.slice(2)
const { verb, argument } = deserialize(readFileSync(file))
const thread = new Worker(worker)
thread.postMessage({ call: 1, kind: 'call', verb, argument })
thread.on('message', (message) => {
  if (message.kind === 'ask') thread.postMessage({ call: 1, kind: 'answer', error: null })
  else if (message.kind !== 'told') {
    console.log(JSON.stringify(message))
    void thread.terminate()
  }
})
