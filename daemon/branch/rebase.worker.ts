import type { Requester } from '../contract/branch.ts'
import type { Change } from '../contract/changeset.ts'
import { syncfs } from '../kernel/file-data.ts'
import { close, O, openat2, withFd } from '../kernel/paths.ts'
import { failpoint } from '../lib/failpoint.ts'
import { serveCalls } from '../lib/worker-side.ts'
import { mayRead } from './commit-environment.ts'
import { LayerSources } from './commit-sources.ts'
import { unpackChanges } from './journal/changes.ts'
import { KernelDisk } from './kernel-disk.ts'
import type { LayerMount } from './overlay.ts'
import { openLayers } from './overlay-mount.ts'
import { landingKey, ownLandings } from './own-landings.ts'
import { Reapplier } from './rebase-apply.ts'
import { findCollisions } from './rebase-collisions.ts'
import { type CutFile, cutFile } from './rebase-cut.ts'
import { mergeCollisions } from './rebase-merge.ts'
import type { Collision } from './rebase-plan.ts'

/** Copying and comparing wait for disks: that happens on this thread. */
export interface CollisionsCall {
  store: string
  branch: string
  /** A part of this branch has landed before. */
  hasLanded: boolean
  bases: readonly string[]
  packed: readonly Uint8Array[]
  forkedAtNs: bigint
  /** The branch's upper directories, topmost first, base by base. */
  uppers: readonly (readonly string[])[]
  requester: Requester
  /** Until when its agent could look at the base; null when that is not known. */
  agentEndedNs: bigint | null
}

export interface CutCall {
  bases: readonly string[]
  uppers: readonly (readonly string[])[]
  packed: readonly Uint8Array[]
  /** One for each of those changes. */
  parts: readonly { hunks: readonly number[]; of: number }[]
}

export interface ReapplyCall {
  /** The new branch's layers, base by base. */
  mounts: readonly LayerMount[]
  /** The old branch's upper directories, topmost first, base by base. */
  uppers: readonly (readonly string[])[]
  packed: readonly Uint8Array[]
  /** Content of those changes, by number, that no layer holds. */
  merged: readonly { index: number; bytes: Uint8Array }[]
}

serveCalls({
  collisions(call: CollisionsCall): Collision[] {
    const { store, branch, hasLanded, bases, packed, forkedAtNs, uppers, agentEndedNs, requester } = call
    const disk = new KernelDisk()
    const journal = `${store}/journal`
    const own = hasLanded ? ownLandings(disk, journal, branch) : null
    const since = ({ base, path }: Change): bigint => own?.get(landingKey(base, path)) ?? forkedAtNs
    const changes = packed.flatMap(unpackChanges)
    const collisions = findCollisions(disk, bases, changes, since)
    const layers = new LayerSources(disk, uppers)
    try {
      const may = (base: string, path: Uint8Array): boolean => mayRead(disk, requester, base, path)
      const ground = { journal, bases, layers, since, agentEndedNs, mayRead: may }
      return mergeCollisions(disk, ground, changes, collisions)
    } finally {
      layers.close()
    }
  },

  cut({ bases, uppers, packed, parts }: CutCall): (CutFile | string)[] {
    const disk = new KernelDisk()
    const layers = new LayerSources(disk, uppers)
    try {
      return packed.flatMap(unpackChanges).map((change, index) => {
        const part = parts[index]
        return part === undefined ? 'no piece of it is named' : cutFile(disk, { bases, layers }, change, part)
      })
    } finally {
      layers.close()
    }
  },

  reapply({ mounts, uppers, packed, merged }: ReapplyCall): void {
    const disk = new KernelDisk()
    const sources = new LayerSources(disk, uppers)
    const roots: number[] = []
    try {
      // The mounts have no place in any tree: they are gone with their descriptors, whatever happens to us.
      for (const mount of mounts)
        roots.push(withFd(openLayers(mount), (fd) => openat2(fd, '.', O.RDONLY | O.DIRECTORY)))
      const changes = packed.flatMap(unpackChanges)
      const contents = new Map(
        merged.flatMap(({ index, bytes }) => (changes[index] === undefined ? [] : [[changes[index], bytes]])),
      )
      new Reapplier(disk, sources, roots, contents).apply(changes)
      for (const root of roots) syncfs(root)
      failpoint('rebase.reapplied')
    } finally {
      for (const root of roots) close(root)
      sources.close()
    }
  },
})
