import { createHash } from 'node:crypto'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Profile } from '../contract/profile.ts'
import { packageRoot } from '../lib/assets.ts'
import { errnoOf } from '../lib/errors.ts'
import { expandHome } from './home.ts'
import { digestOf } from './profile-digest.ts'

/** A shipped profile as the build resolved it, and the files that it was resolved from: itself, then what it extends. */
export interface ReadyProfile {
  files: readonly { name: string; sha256: string }[]
  profile: Profile
}

export interface ReadyPlaces {
  /** What the build left: `<name>.json`. */
  ready: string
  /** The files that it was made from. */
  shipped: string
  /** The operator's own profiles, which come first. */
  own: string
}

const places = (): ReadyPlaces => ({
  ready: join(packageRoot(), 'dist/profiles'),
  shipped: join(packageRoot(), 'policies/profiles'),
  own: '/etc/puzzled/profiles',
})

/**
 * The profile of a name, with the digest of exactly that. A shipped one was parsed and checked by the build: it counts
 * while every file that it came from has the bytes it had then and the operator has none of the same name. In all other
 * cases the files are read, which loads a YAML parser and a schema (a third of a short run).
 */
export async function resolveProfile(
  name: string,
  home: string | undefined,
): Promise<{ profile: Profile; sha256: string }> {
  const ready = await readyProfile(name)
  if (ready !== undefined) {
    const profile = expandHome(ready, home)
    return { profile, sha256: digestOf(profile) }
  }
  const { ProfileStore } = await import('./profiles.ts')
  return new ProfileStore().resolve(name, home === undefined ? {} : { home })
}

export async function readyProfile(name: string, at: ReadyPlaces = places()): Promise<Profile | undefined> {
  if (!/^[a-z][a-z0-9-]*$/.test(name)) return undefined
  const text = await readOrAbsent(join(at.ready, `${name}.json`))
  if (text === undefined) return undefined
  const { files, profile } = JSON.parse(text.toString()) as ReadyProfile
  const current = await Promise.all(files.map((file) => isCurrent(file, at)))
  return current.every(Boolean) ? profile : undefined
}

async function isCurrent(
  { name, sha256 }: ReadyProfile['files'][number],
  { shipped, own }: ReadyPlaces,
): Promise<boolean> {
  const [bytes, hidden] = await Promise.all([
    readOrAbsent(join(shipped, `${name}.yaml`)),
    mayExist(join(own, `${name}.yaml`)),
  ])
  return !hidden && bytes !== undefined && createHash('sha256').update(bytes).digest('hex') === sha256
}

async function readOrAbsent(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Only a certain "no" is one: a file that cannot be looked at is left to whoever reports that. */
async function mayExist(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    return errnoOf(error) !== 'ENOENT'
  }
}
