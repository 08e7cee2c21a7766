import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { packageRoot } from '../lib/assets.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import type { LoadedPolicy } from './gate-messages.ts'

export interface PolicySource {
  name: string
  file: string
  /** When it is known what the file must be. */
  sha256?: string
  entrypoint?: string
}

export const DEFAULT_ENTRYPOINT = 'puzzled/commit/decision'
export const POLICY_DIRECTORY = '/etc/puzzled/policies'

/** More than a policy is; the compiler's output for ours is 0.2 MB. */
const MAX_POLICY_BYTES = 32 * 1024 * 1024

/**
 * Everything that decides: the shipped policy (which must be what `SHA256SUMS` says), all policies of the operator,
 * and the files that were named. Policies only add findings, so more of them are never milder.
 */
export async function policySources(
  options: { shipped?: string; directory?: string; files?: readonly string[] } = {},
): Promise<PolicySource[]> {
  const dist = options.shipped ?? join(packageRoot(), 'policies/dist')
  const sums = await readText(join(dist, 'SHA256SUMS'))
  const sha256 = /^([0-9a-f]{64}) {2}commit\.wasm$/m.exec(sums)?.[1]
  if (sha256 === undefined)
    throw new PuzzledError('policy-invalid', `${join(dist, 'SHA256SUMS')}: no line for commit.wasm`)
  const shipped = { name: 'commit', file: join(dist, 'commit.wasm'), sha256, entrypoint: DEFAULT_ENTRYPOINT }
  const installed = await wasmFiles(options.directory ?? POLICY_DIRECTORY)
  const sources = [
    shipped,
    ...[...installed, ...(options.files ?? [])].map((file) => ({ name: basename(file, '.wasm'), file })),
  ]
  const names = sources.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new PuzzledError('policy-invalid', `Two policies have the name "${twice}"`, {
      data: { files: sources.filter(({ name }) => name === twice).map(({ file }) => file) },
    })
  return sources
}

/** Reads and checks every source, or none. Whether it is a policy is found out by the worker that is to run it. */
export const loadPolicies = (sources: readonly PolicySource[]): Promise<LoadedPolicy[]> =>
  Promise.all(sources.map(loadPolicy))

async function loadPolicy({ name, file, sha256, entrypoint }: PolicySource): Promise<LoadedPolicy> {
  const bytes = await readBytes(file)
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (sha256 !== undefined && digest !== sha256)
    throw new PuzzledError('policy-invalid', `${file}: found SHA-256 ${digest}, expected ${sha256}`)
  return { name, file, sha256: digest, bytes, ...(entrypoint === undefined ? {} : { entrypoint }) }
}

/** The version of a whole set: what an approval is bound to. */
export const policyVersion = (policies: readonly { name: string; sha256: string }[]): string =>
  createHash('sha256')
    .update(
      policies
        .map(({ name, sha256 }) => `${sha256}  ${name}\n`)
        .sort()
        .join(''),
    )
    .digest('hex')

async function readBytes(file: string): Promise<Buffer> {
  try {
    const bytes = await readFile(file)
    if (bytes.byteLength <= MAX_POLICY_BYTES) return bytes
  } catch (error) {
    throw new PuzzledError(
      'policy-invalid',
      `Cannot read policy "${file}": ${errnoOf(error) ?? 'unknown error'}`,
      {
        cause: error,
      },
    )
  }
  throw new PuzzledError('policy-invalid', `${file}: larger than ${MAX_POLICY_BYTES} bytes`)
}

const readText = async (file: string): Promise<string> => (await readBytes(file)).toString('utf8')

async function wasmFiles(directory: string): Promise<string[]> {
  try {
    const names = await readdir(directory)
    return names
      .filter((name) => name.endsWith('.wasm'))
      .sort()
      .map((name) => join(directory, name))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw new PuzzledError(
      'policy-invalid',
      `Cannot read "${directory}": ${errnoOf(error) ?? 'unknown error'}`,
      {
        cause: error,
      },
    )
  }
}
