// Runs a TypeScript tool: bundles it into a temporary file and executes that. Node 20 cannot strip types itself.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))
const [file, ...args] = process.argv.slice(2)
if (file === undefined) {
  console.error('usage: node tools/run-ts.mjs FILE.ts [ARG...]')
  process.exit(2)
}
// Inside node_modules, so that the bare imports that stay external resolve as they do from the source.
const dir = mkdtempSync(join(root, 'node_modules/.run-ts-'))
try {
  const bundle = await rolldown({
    input: resolve(file),
    cwd: root,
    platform: 'node',
    external: [/^[^./]/],
    logLevel: 'warn',
  })
  await bundle.write({ dir, format: 'esm', entryFileNames: 'main.mjs' })
  await bundle.close()
  const done = spawnSync(process.execPath, [join(dir, 'main.mjs'), ...args], { stdio: 'inherit' })
  process.exitCode = done.status ?? 1
} finally {
  rmSync(dir, { recursive: true, force: true })
}
