import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Workers and the command line are tested as shipped, so every tier starts from a fresh build (about 0.5 s). */
export function setup(): void {
  if (process.env.PUZZLED_TEST_BUILT === '1') return
  const root = fileURLToPath(new URL('..', import.meta.url))
  execFileSync(process.execPath, ['tools/build.mjs'], { cwd: root, stdio: 'inherit' })
  process.env.PUZZLED_TEST_BUILT = '1'
}
