import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A child program of this folder as one file, beside the packages that it needs; `remove` takes it away again. */
export async function bundleChild(name: string): Promise<{ path: string; remove(): void }> {
  const built = mkdtempSync(join(root, 'node_modules/.crash-'))
  const input = join(root, 'test/crash', name)
  const bundle = await rolldown({ input, cwd: root, platform: 'node', external: ['koffi'], logLevel: 'warn' })
  await bundle.write({ dir: built, format: 'esm', entryFileNames: 'child.mjs' })
  await bundle.close()
  return { path: join(built, 'child.mjs'), remove: () => rmSync(built, { recursive: true }) }
}
