import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

let found: string | undefined

/** The folder of the installed package: the place of prebuilt binaries, policies and built workers. */
export function packageRoot(): string {
  if (found !== undefined) return found
  let dir = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(dir, 'policies'))) {
    const parent = dirname(dir)
    if (parent === dir) throw new Error('The puzzled package is incomplete: no policies above its code')
    dir = parent
  }
  found = dir
  return dir
}

/** A worker is always loaded as built (`dist/workers/<name>.js`), in tests as well. */
export const workerPath = (name: string): string => join(packageRoot(), 'dist', 'workers', `${name}.js`)
