import { defineConfig } from 'vitest/config'

/** One project per tier. `tools/test.mjs` decides which of them this machine can run. */
const tier = (name: string, include: string[], options: Record<string, unknown> = {}) => ({
  test: { name, include, pool: 'forks' as const, globalSetup: ['test/build-once.ts'], ...options },
})

export default defineConfig({
  test: {
    projects: [
      tier('unit', ['{daemon,ctl}/**/*.test.ts', 'test/*.test.ts', 'test/suites/**/*.test.ts']),
      tier('crash', ['test/crash/**/*.test.ts'], { testTimeout: 600_000 }),
      tier('root', ['test/root/**/*.test.ts'], { testTimeout: 120_000, hookTimeout: 60_000 }),
      tier('escape', ['test/escape/**/*.test.ts'], { testTimeout: 120_000, hookTimeout: 60_000 }),
      tier('e2e', ['test/e2e/**/*.test.ts'], { testTimeout: 180_000, hookTimeout: 60_000 }),
    ],
  },
})
