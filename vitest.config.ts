import { defineConfig } from 'vitest/config'
import { patience } from './test/tier/patience.ts'
import { rooms } from './test/tier/room.ts'

/** One project per tier. `tools/test.mjs` decides which of them this machine can run. */
const tier = (name: string, include: string[], options: Record<string, unknown> = {}) => ({
  test: {
    ...{ name, include, pool: 'forks' as const, globalSetup: ['test/build-once.ts'] },
    // What is waited for comes at once on an idle machine; the second that is usual is short for a busy one.
    expect: { poll: { timeout: patience * 30_000 } },
    ...options,
  },
})

/** Tiers that change the machine: a room per file (tier/room.ts), and nothing left behind by any test. */
const guarded = {
  pool: rooms,
  setupFiles: ['test/tier/residue-guard.ts'],
  testTimeout: patience * 120_000,
  hookTimeout: patience * 180_000,
}

export const TIERS = [
  tier('unit', ['{daemon,ctl}/**/*.test.ts', 'test/*.test.ts', 'test/suites/**/*.test.ts'], {
    testTimeout: 60_000,
    hookTimeout: 60_000,
  }),
  tier('crash', ['test/crash/**/*.test.ts'], { testTimeout: 600_000, hookTimeout: 180_000 }),
  tier('root', ['test/root/**/*.test.ts'], guarded),
  tier('escape', ['test/escape/**/*.test.ts'], guarded),
  tier('e2e', ['test/e2e/**/*.test.ts'], { ...guarded, testTimeout: patience * 180_000 }),
  tier('vm', ['test/vm/checks/**/*.test.ts'], { testTimeout: 300_000, hookTimeout: 120_000 }),
]

export default defineConfig({ test: { projects: TIERS } })
