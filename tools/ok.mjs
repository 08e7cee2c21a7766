// `npm run ok`: what every commit must pass. Prints one line per check, everything of a check that fails.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const biome = `${root}node_modules/@biomejs/cli-linux-x64/biome`
/** One process for many files takes half as long as one for each; `npm test` has them one by one. */
const UNIT = ['run', '--project', 'unit', '--reporter=dot', '--maxWorkers=2', '--no-isolate']
const checks = [
  ['format and lint', biome, ['check', '--error-on-warnings', '.']],
  ['types', 'node_modules/.bin/tsc', ['-p', '.']],
  ['generated files', process.execPath, ['tools/generate.mjs', '--check']],
  ['unit and architecture', 'node_modules/.bin/vitest', UNIT],
]
let failed = 0
for (const [name, command, args] of checks) {
  const started = performance.now()
  const run = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const good = run.status === 0
  console.log(`${good ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
  if (!good) {
    failed++
    console.log(`${run.stdout ?? ''}${run.stderr ?? ''}${run.error ?? ''}`)
  }
}
process.exitCode = failed === 0 ? 0 : 1
