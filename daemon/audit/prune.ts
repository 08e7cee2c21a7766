import { mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listSegments, segmentName } from './segments.ts'

export interface PruneLimits {
  /** Segments whose last write is older than this go. */
  maxAgeMs: number
  /** The oldest go until the rest is smaller than this. */
  maxBytes: number
}

/** Beside the segments: the same filesystem, and the same rights. */
const ARCHIVE = 'archive'

/**
 * Applies retention: how many segments went to `archive/` below the log. Nothing is removed: whoever keeps the log elsewhere
 * takes them from there.
 */
export async function archiveOld(directory: string, limits: PruneLimits, now: number): Promise<number> {
  if (!Number.isFinite(limits.maxAgeMs) && !Number.isFinite(limits.maxBytes)) return 0
  const archive = join(directory, ARCHIVE)
  await mkdir(archive, { recursive: true, mode: 0o700 })
  const moved = await pruneLog(directory, archive, limits, now)
  return moved.length
}

/**
 * Moves old sealed segments to `archive`, where the operator keeps or removes them. The newest two stay whatever the
 * limits are: the chain always continues from a signed head that is at hand.
 */
export async function pruneLog(
  directory: string,
  archive: string,
  limits: PruneLimits,
  now: number,
): Promise<string[]> {
  const segments = await listSegments(directory)
  const facts = await Promise.all(
    segments.map(async (segment) => ({
      name: segmentName(segment),
      ...pick(await stat(join(directory, segmentName(segment)))),
    })),
  )
  let total = facts.reduce((sum, { size }) => sum + size, 0)
  const moved: string[] = []
  for (const { name, size, mtimeMs } of facts.slice(0, -2)) {
    if (total <= limits.maxBytes && now - mtimeMs <= limits.maxAgeMs) break
    await rename(join(directory, name), join(archive, name))
    total -= size
    moved.push(name)
  }
  return moved
}

const pick = ({ size, mtimeMs }: { size: number; mtimeMs: number }) => ({ size, mtimeMs })
