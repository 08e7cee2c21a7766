import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FeatureName, FeatureRow, Features } from './contract/features.ts'
import { errnoOf } from './lib/errors.ts'

type Probe = (names?: readonly FeatureName[]) => Promise<Partial<Features>>

/**
 * Primitives that every start uses, each with a step that must succeed: on a host that lost one of them since it was
 * found, the start is refused instead of the fork. Nothing else may be in this list.
 */
const USED_BY_EVERY_START: ReadonlySet<string> = new Set<FeatureName>([
  'overlay',
  'seccomp',
  'netns',
  'pidfd',
])

/** What was found, and what it is true for. */
interface Memory {
  readonly boot: string
  readonly version: string
  readonly rows: Partial<Record<FeatureName, FeatureRow>>
}

/**
 * Features that were found on this store since the host booted are not tried again for every branch: three processes, an
 * overlay and a network namespace each time. Only what was found is kept; what is missing is tried anew.
 */
export function rememberFeatures(root: string, version: string, probe: Probe): Probe {
  const path = join(root, 'features.json')
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  let known: Memory | undefined
  return async (names) => {
    // Who asks for all of them wants to see them tried; with an override the host is to be another one.
    if (names === undefined || process.env.PUZZLED_TEST_FEATURES !== undefined) return probe(names)
    known ??= readMemory(path, boot, version)
    const unknown = names.filter((name) => known?.rows[name] === undefined)
    if (unknown.length === 0) return known.rows
    const found = await probe(unknown)
    const fresh = Object.values(found).filter(
      ({ name, state }) => state === 'have' && USED_BY_EVERY_START.has(name) && unknown.includes(name),
    )
    const rows = { ...known.rows, ...Object.fromEntries(fresh.map((row) => [row.name, row])) }
    if (fresh.length > 0) writeMemory(path, { boot, version, rows })
    known = { boot, version, rows }
    return { ...found, ...rows }
  }
}

/** The store belongs to this user alone. A file that is not what this version writes on this boot is none. */
function readMemory(path: string, boot: string, version: string): Memory {
  const nothing: Memory = { boot, version, rows: {} }
  try {
    const read = JSON.parse(readFileSync(path, 'utf8')) as Memory
    if (read.boot !== boot || read.version !== version) return nothing
    const rows = Object.entries(read.rows).filter(
      ([name, row]) => USED_BY_EVERY_START.has(name) && row.state === 'have',
    )
    return { ...nothing, rows: Object.fromEntries(rows) }
  } catch {
    // Not there yet, or torn by a power cut, after which it would be of another boot anyway.
    return nothing
  }
}

/** Not synced: it is of no use after a power cut. */
function writeMemory(path: string, memory: Memory): void {
  try {
    writeFileSync(`${path}.new`, JSON.stringify(memory), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch (error) {
    // A full disk is told by the first record that matters.
    if (errnoOf(error) === undefined) throw error
  }
}
