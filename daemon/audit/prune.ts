import { mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { segmentName } from './segment-name.ts'
import { ARCHIVE, listSegments } from './segments.ts'

export interface PruneLimits {
  /** Segments whose last write is older than this go. */
  maxAgeMs: number
  /** The oldest go until the rest is smaller than this. */
  maxBytes: number
}

/**
 * Applies retention: how many segments went to `archive/` below the log. Nothing is removed: whoever keeps the log elsewhere
 * takes them from there. The newest two stay whatever the limits are: the chain always continues from a signed head that
 * is at hand. `announce` puts on record which segments go before they do: whoever removes more than that is found out.
 */
export async function archiveOld(
  directory: string,
  limits: PruneLimits,
  now: number,
  announce: (through: number) => Promise<unknown>,
): Promise<number> {
  if (!Number.isFinite(limits.maxAgeMs) && !Number.isFinite(limits.maxBytes)) return 0
  const old = await segmentsBeyond(directory, limits, now)
  const through = old.at(-1)
  if (through === undefined) return 0
  await mkdir(join(directory, ARCHIVE), { recursive: true, mode: 0o700 })
  await announce(through)
  for (const segment of old) {
    const name = segmentName(segment)
    await rename(join(directory, name), join(directory, ARCHIVE, name))
  }
  return old.length
}

async function segmentsBeyond(directory: string, limits: PruneLimits, now: number): Promise<number[]> {
  const segments = await listSegments(directory)
  const facts = await Promise.all(
    segments.map(async (segment) => {
      const { size, mtimeMs } = await stat(join(directory, segmentName(segment)))
      return { segment, size, mtimeMs }
    }),
  )
  let total = facts.reduce((sum, { size }) => sum + size, 0)
  const old: number[] = []
  for (const { segment, size, mtimeMs } of facts.slice(0, -2)) {
    if (total <= limits.maxBytes && now - mtimeMs <= limits.maxAgeMs) break
    total -= size
    old.push(segment)
  }
  return old
}
