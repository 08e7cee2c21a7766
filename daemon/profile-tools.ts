import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { NetTestAnswer } from './contract/engine.ts'
import type { Profile } from './contract/profile.ts'
import { errnoOf, PuzzledError } from './lib/errors.ts'
import { netTest } from './network/net-test.ts'
import { checkRules } from './network/rule-check.ts'
import { type Draft, draftProfile, type InstructionFile } from './policy/agents-md.ts'
import { showPlace } from './policy/document.ts'
import { narrow } from './policy/inherit.ts'
import { PROFILE_FORMAT, parseProfile } from './policy/profile.ts'
import { digestOf } from './policy/profile-digest.ts'
import { compareProfiles, profileLines } from './policy/profile-lines.ts'
import { type ProfileListing, ProfileStore } from './policy/profiles.ts'
import { widenings } from './policy/widening.ts'

/** What `puzzlectl profile` does. Needs no rights and changes nothing. */

export const listProfiles = (): Promise<ProfileListing[]> => new ProfileStore().list()

export interface ShownProfile {
  profile: Profile
  sha256: string
  files: readonly string[]
  lines: readonly { text: string; why: string | null; origin: string | null }[]
}

/** The effective profile; every line with the place that says it, or null for what is so by default. */
export async function showProfile(name: string): Promise<ShownProfile> {
  const { profile, origins, files } = await new ProfileStore().describe(name)
  const lines = profileLines(profile).map(({ key, text, why }) => {
    const place = origins.get(key)
    return { text, why: why ?? null, origin: place === undefined ? null : showPlace(place) }
  })
  return { profile, sha256: digestOf(profile), files, lines }
}

/** What the rules of a profile say to a request. */
export async function testNetwork(name: string, method: string, url: string): Promise<NetTestAnswer> {
  const { profile } = await new ProfileStore().describe(name)
  return netTest(profile.network, method, url)
}

/** Network rules that work and are hardly meant: they refuse nothing, so they are no problems. */
export async function profileWarnings(name: string): Promise<readonly string[]> {
  const { profile } = await new ProfileStore().describe(name)
  return ruleTexts(profile, 'warning')
}

const ruleTexts = ({ network }: Profile, wanted: 'error' | 'warning'): readonly string[] =>
  checkRules(network)
    .filter(({ severity }) => severity === wanted)
    .map(({ rule, message }) => (rule === '' ? `network: ${message}` : `network rule "${rule}": ${message}`))

/** All problems of a file; empty when it can be used. */
export async function validateProfile(name: string): Promise<readonly string[]> {
  try {
    const { profile } = await new ProfileStore().describe(name)
    return ruleTexts(profile, 'error')
  } catch (error) {
    if (!(error instanceof PuzzledError)) throw error
    const { problems } = error.data ?? {}
    return Array.isArray(problems) ? problems.map(String) : [error.message]
  }
}

export async function diffProfiles(from: string, to: string) {
  const store = new ProfileStore()
  const [before, after] = [await store.describe(from), await store.describe(to)]
  return {
    lines: compareProfiles(before.profile, after.profile),
    wider: widenings(before.profile, after.profile).map(
      ({ found, allowed }) => `${found} (before: ${allowed})`,
    ),
  }
}

/** The beginning of an own profile: everything optional stands there as a comment. */
export async function initProfile(name: string, parent: string): Promise<string> {
  const { profile } = await new ProfileStore().describe(parent)
  const text = `format: ${PROFILE_FORMAT}
name: ${name}
description: What this agent is for, in one sentence.
# It can only take away from what "${parent}" grants: ${profile.description}
extends: ${parent}

# gate:
#   maxFiles: 500
#   holdPaths:
#     - path: /**/migrations
#       why: Migrations are looked at by a person.
#   denyPaths:
#     - path: /**/production
#       why: Production settings are never changed by an agent.

# network:
#   mode: none
#   rules: []

# budgets:
#   wall: 1h
#   memory: 4GiB
`
  // A name that is no name must not become a file that cannot be used.
  parseProfile(text, `${name}.yaml`)
  return text
}

const INSTRUCTIONS = [
  'AGENTS.md',
  'AGENTS.override.md',
  'CLAUDE.md',
  'GEMINI.md',
  '.cursorrules',
  '.github/copilot-instructions.md',
]
const MAX_INSTRUCTIONS = 64 * 1024

/** A draft from the instructions of a project (or from one file or directory of them); proved to only narrow. */
export async function profileFromInstructions(path: string, name: string, parent: string): Promise<Draft> {
  const files = await instructionFiles(path)
  if (files.length === 0)
    throw new PuzzledError('usage', `No AGENTS.md, no .agents directory and nothing like them in "${path}"`)
  const draft = draftProfile(files, name, parent)
  narrow(await new ProfileStore().describe(parent), parseProfile(draft.yaml, `${name}.yaml`))
  return draft
}

async function instructionFiles(path: string): Promise<InstructionFile[]> {
  if ((await stat(path)).isFile()) return [await readInstructions(path, path)]
  const below = path.endsWith('.agents') ? path : join(path, '.agents')
  const inside = await readdir(below, { recursive: true }).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return []
    throw error
  })
  const candidates = [
    ...INSTRUCTIONS.map((file) => join(path, file)),
    ...inside
      .filter((file) => file.endsWith('.md'))
      .sort()
      .slice(0, 100)
      .map((file) => join(below, file)),
  ]
  const files: InstructionFile[] = []
  for (const file of candidates) {
    try {
      files.push(await readInstructions(file, relative(path, file)))
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error
    }
  }
  return files
}

async function readInstructions(file: string, shown: string): Promise<InstructionFile> {
  const bytes = await readFile(file)
  return { path: shown, text: bytes.subarray(0, MAX_INSTRUCTIONS).toString('utf8') }
}
