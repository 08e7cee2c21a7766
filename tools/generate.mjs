// Regenerates every generated file; with --check it only says which are stale. Each generator is a TypeScript
// file in tools/generators/ that exports nothing and prints one JSON object {path: content} on stdout.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const check = process.argv.includes('--check')
const generators = readdirSync(`${root}tools/generators`)
  .filter((name) => name.endsWith('.ts'))
  .sort()
let stale = 0
for (const generator of generators) {
  const run = spawnSync(process.execPath, ['tools/run-ts.mjs', `tools/generators/${generator}`], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (run.status !== 0) {
    console.error(`${generator} failed: ${run.stderr}`)
    stale++
    continue
  }
  for (const [path, content] of Object.entries(JSON.parse(run.stdout))) {
    let current = null
    try {
      current = readFileSync(root + path, 'utf8')
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
    }
    if (current === content) continue
    stale++
    if (check) console.error(`stale: ${path} (run: npm run generate)`)
    else {
      mkdirSync(dirname(root + path), { recursive: true })
      writeFileSync(root + path, content)
      console.log(`wrote ${path}`)
    }
  }
}
process.exitCode = check && stale > 0 ? 1 : 0
