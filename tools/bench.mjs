// `npm run bench [-- AREA…]`: builds, then runs the benchmarks of test/bench/. Each prints ratios and keeps its numbers in
// bench-results/. Run it on a quiet machine; the ratios are made to survive a busy one.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const node = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1
process.exitCode =
  node('tools/build.mjs') || node('tools/run-ts.mjs', 'test/bench/main.ts', ...process.argv.slice(2))
