import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packageRoot } from '../lib/assets.ts'

it('an idle gate worker does not keep a program alive', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'puzzled-idle-'))
  const script = join(dir, 'idle.mjs')
  // The pool's own way with a thread, as a program of its own: the end of the program is what is observed.
  await writeFile(
    script,
    `import { Worker } from 'node:worker_threads'
     const worker = new Worker(process.argv[2], { workerData: { policies: [], memoryPages: 16 }, env: {}, stdout: true, stderr: true })
     worker.on('message', (message) => { worker.unref(); console.log(message.kind) })`,
  )
  const worker = join(packageRoot(), 'dist/workers/gate.js')
  const out = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, [script, worker], { timeout: 20_000 }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    )
  })
  await rm(dir, { recursive: true })
  expect(out).toBe('ready\n')
})
