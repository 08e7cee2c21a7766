import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packageRoot } from '../lib/assets.ts'

it('an idle gate worker does not keep a program alive, and does not outlive it', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'puzzled-idle-'))
  const script = join(dir, 'idle.mjs')
  // The pool's own way with a worker, as a program of its own: the end of the program is what is observed.
  await writeFile(
    script,
    `import { spawn } from 'node:child_process'
     const worker = spawn(process.execPath, [process.argv[2]], { detached: true, env: {}, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
     const channel = worker.stdio[3]
     const start = Buffer.from('{"kind":"start","memoryPages":16,"policies":[]}')
     const prefix = Buffer.alloc(8)
     prefix.writeUInt32LE(start.length)
     channel.write(Buffer.concat([prefix, start]))
     channel.once('data', (said) => { worker.unref(); channel.unref(); console.log(worker.pid, said.subarray(8).toString()) })`,
  )
  const worker = join(packageRoot(), 'dist/workers/gate.js')
  const out = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, [script, worker], { timeout: 20_000 }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    )
  })
  await rm(dir, { recursive: true })
  const [, pid, said] = /^(\d+) (.*)\n$/.exec(out) ?? []
  expect(said).toBe('{"kind":"ready"}')
  await expect.poll(() => isThere(Number(pid)), { timeout: 10_000 }).toBe(false)
})

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
