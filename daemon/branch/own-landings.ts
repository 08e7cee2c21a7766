import { type Disk, nameOf } from '../lib/disk.ts'
import { changesIfKnown } from './journal/changes.ts'
import { splitPath } from './journal/format.ts'
import { stateOf } from './journal/reader.ts'
import { journalName } from './journal/writer.ts'
import { readTraces } from './recover.ts'

/** A path of a base, with its bytes apart. */
export const landingKey = (base: number, path: Uint8Array): string =>
  `${base}:${Buffer.from(path).toString('latin1')}`

/**
 * Which paths earlier parts of this branch landed, and when the last of them was done. What the base holds there is the
 * branch's own work unless it changed after that moment; everywhere else the moment that counts is still the fork. A
 * part whose record is damaged, or that retention has removed (or half of it, before a crash), is not known any more: that can only find a conflict too many.
 */
export function ownLandings(disk: Disk, journalPath: string, branch: string): ReadonlyMap<string, bigint> {
  const landings = new Map<string, bigint>()
  const journal = disk.openRoot(journalPath)
  try {
    for (const { commit, journal: read } of readTraces(disk, journal)) {
      if (read?.kind !== 'read' || stateOf(read) !== 'done') continue
      if (read.begin.branch !== branch || read.begin.reverts !== null) continue
      // DONE was written behind everything that was renamed.
      const at = disk.stat(journal, nameOf(journalName(commit)))?.mtimeNs ?? 0n
      // With each path its directory, which is another one by that alone.
      for (const { base, path } of changesIfKnown(disk, journal, commit))
        for (const touched of [path, splitPath(path).parent]) {
          const key = landingKey(base, touched)
          const known = landings.get(key)
          if (known === undefined || known < at) landings.set(key, at)
        }
    }
    return landings
  } finally {
    disk.close(journal)
  }
}
