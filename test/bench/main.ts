import type { BenchArea } from './harness.ts'
import { runArea } from './harness.ts'

/** Every area; `npm run bench -- NAME…` runs some of them. */
const AREAS: Readonly<Record<string, () => Promise<{ area: BenchArea }>>> = {
  start: () => import('./areas/start.ts'),
  proxy: () => import('./areas/proxy.ts'),
  branch: () => import('./areas/branch.ts'),
  commit: () => import('./areas/commit.ts'),
  large: () => import('./areas/large.ts'),
  run: () => import('./areas/run.ts'),
  scale: () => import('./areas/scale.ts'),
  gate: () => import('./areas/gate.ts'),
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in AREAS))
if (unknown.length > 0) {
  console.error(`No such area: ${unknown.join(', ')}. There are: ${Object.keys(AREAS).join(', ')}`)
  process.exitCode = 2
} else {
  for (const [name, load] of Object.entries(AREAS))
    if (wanted.length === 0 || wanted.includes(name)) await runArea((await load()).area)
}
