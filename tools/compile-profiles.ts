// Resolves the shipped profiles into dist/profiles/: what `run` uses while the files are what they were (ready-profiles.ts).
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { packageRoot } from '../daemon/lib/assets.ts'
import { ProfileStore } from '../daemon/policy/profiles.ts'
import type { ReadyProfile } from '../daemon/policy/ready-profiles.ts'

const store = new ProfileStore({ directories: [join(packageRoot(), 'policies/profiles')] })
const target = join(packageRoot(), 'dist/profiles')
mkdirSync(target, { recursive: true })
for (const { name, problem } of await store.list()) {
  if (problem !== undefined) throw new Error(problem)
  const { profile, files } = await store.describe(name)
  const ready: ReadyProfile = {
    files: files.map((file) => ({
      name: basename(file, '.yaml'),
      sha256: createHash('sha256').update(readFileSync(file)).digest('hex'),
    })),
    profile,
  }
  writeFileSync(join(target, `${name}.json`), JSON.stringify(ready))
}
