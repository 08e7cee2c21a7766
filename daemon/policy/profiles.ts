import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Profile } from '../contract/profile.ts'
import { packageRoot } from '../lib/assets.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { expandHome } from './home.ts'
import { narrow, resolveRoot } from './inherit.ts'
import { type ParsedProfile, parseProfile, type ResolvedProfile } from './profile.ts'
import { digestOf } from './profile-digest.ts'
import { nearest } from './schema-error.ts'

export interface ProfileOptions {
  /** Searched in this order; the first file with the name is used. */
  directories?: readonly string[]
  /** The requester's home for paths that begin with `~/`. Without it, optional `~/` mounts are left out. */
  home?: string
}

export interface ProfileListing {
  name: string
  description: string
  file: string
  /** Why it cannot be used; absent for a usable profile. */
  problem?: string
}

/** More levels than this is a loop or a riddle. */
const MAX_DEPTH = 8

export const profileDirectories = (): string[] => [
  '/etc/puzzled/profiles',
  join(packageRoot(), 'policies/profiles'),
]

/**
 * Profiles by name (`standard`) or by file (`./mine.yaml`). Every call reads the files anew: a profile is small, and
 * what a branch got is kept in its record.
 */
export class ProfileStore {
  readonly #directories: readonly string[]
  readonly #home: string | undefined

  constructor(options: ProfileOptions = {}) {
    this.#directories = options.directories ?? profileDirectories()
    this.#home = options.home
  }

  /** The profile after inheritance and defaults, with the digest of exactly that. */
  async resolve(
    name: string,
    options: { home?: string } = {},
  ): Promise<{ profile: Profile; sha256: string }> {
    const { profile } = await this.describe(name)
    const expanded = expandHome(profile, options.home ?? this.#home)
    return { profile: expanded, sha256: digestOf(expanded) }
  }

  /** The same with the place in a file of every grant and limit; `~/` is left as it is written. */
  async describe(name: string): Promise<ResolvedProfile & { files: readonly string[] }> {
    const chain: ParsedProfile[] = []
    for (let next: string | undefined = name; next !== undefined; ) {
      const parsed = await this.#load(next)
      if (chain.length >= MAX_DEPTH || chain.some(({ document }) => document.file === parsed.document.file))
        throw new PuzzledError(
          'profile-invalid',
          `Profile "${name}" extends itself or more than ${MAX_DEPTH} levels: ${chain.map((each) => each.source.name).join(' → ')}`,
        )
      chain.push(parsed)
      next = parsed.source.extends
    }
    const [root, ...children] = chain.reverse()
    if (root === undefined) throw new PuzzledError('internal', `Profile "${name}" has no file`)
    const resolved = children.reduce(narrow, resolveRoot(root))
    return { ...resolved, files: chain.map(({ document }) => document.file) }
  }

  /** Every profile that can be named, usable or not; a file hidden by one of the same name is left out. */
  async list(): Promise<ProfileListing[]> {
    const found = new Map<string, ProfileListing>()
    for (const directory of this.#directories)
      for (const file of await yamlFiles(directory)) {
        const name = basename(file, '.yaml')
        if (found.has(name)) continue
        try {
          const { profile } = await this.describe(file)
          found.set(name, { name, description: profile.description, file })
        } catch (error) {
          if (!(error instanceof PuzzledError)) throw error
          found.set(name, { name, description: '', file, problem: error.message })
        }
      }
    return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async #load(name: string): Promise<ParsedProfile> {
    if (name.includes('/') || name.endsWith('.yaml')) return readProfile(name)
    for (const directory of this.#directories) {
      const file = join(directory, `${name}.yaml`)
      try {
        const parsed = await readProfile(file)
        if (parsed.source.name === name) return parsed
        throw new PuzzledError(
          'profile-invalid',
          `${file}: found the name "${parsed.source.name}", expected "${name}"`,
        )
      } catch (error) {
        if (!(error instanceof PuzzledError && error.data?.absent === true)) throw error
      }
    }
    return this.#unknown(name)
  }

  async #unknown(name: string): Promise<never> {
    const files = (await Promise.all(this.#directories.map(yamlFiles))).flat()
    const known = [...new Set(files.map((file) => basename(file, '.yaml')))].sort()
    const near = nearest(name, known)
    throw new PuzzledError('profile-invalid', `Unknown profile ${JSON.stringify(name)}`, {
      hint: near === undefined ? `Known profiles: ${known.join(', ')}` : `Did you mean "${near}"?`,
      data: { unknown: true },
    })
  }
}

async function readProfile(file: string): Promise<ParsedProfile> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (error) {
    throw new PuzzledError(
      'profile-invalid',
      `Cannot read profile "${file}": ${errnoOf(error) ?? 'unknown error'}`,
      {
        cause: error,
        data: { absent: errnoOf(error) === 'ENOENT' },
      },
    )
  }
  const text = bytes.toString('utf8')
  if (!Buffer.from(text, 'utf8').equals(bytes))
    throw new PuzzledError('profile-invalid', `${file}:1:1: found bytes that are not UTF-8`)
  return parseProfile(text, file)
}

async function yamlFiles(directory: string): Promise<string[]> {
  try {
    const names = await readdir(directory)
    return names
      .filter((name) => /^[a-z][a-z0-9-]*\.yaml$/.test(name))
      .sort()
      .map((name) => join(directory, name))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}
