import { syncfs } from '../kernel/file-data.ts'
import { close, O, openat2, withFd } from '../kernel/paths.ts'
import { serveCalls } from '../lib/worker-side.ts'
import { LayerSources } from './commit-sources.ts'
import { unpackChanges } from './journal/changes.ts'
import { KernelDisk } from './kernel-disk.ts'
import type { LayerMount } from './overlay.ts'
import { openLayers } from './overlay-mount.ts'
import { landingKey, ownLandings } from './own-landings.ts'
import { Reapplier } from './rebase-apply.ts'
import { findCollisions } from './rebase-collisions.ts'
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
}

export interface ReapplyCall {
  /** The new branch's layers, base by base. */
  mounts: readonly LayerMount[]
  /** The old branch's upper directories, topmost first, base by base. */
  uppers: readonly (readonly string[])[]
  packed: readonly Uint8Array[]
}

serveCalls({
  collisions({ store, branch, hasLanded, bases, packed, forkedAtNs }: CollisionsCall): Collision[] {
    const disk = new KernelDisk()
    const own = hasLanded ? ownLandings(disk, `${store}/journal`, branch) : null
    return findCollisions(
      disk,
      bases,
      packed.flatMap(unpackChanges),
      ({ base, path }) => own?.get(landingKey(base, path)) ?? forkedAtNs,
    )
  },

  reapply({ mounts, uppers, packed }: ReapplyCall): void {
    const disk = new KernelDisk()
    const sources = new LayerSources(disk, uppers)
    const roots: number[] = []
    try {
      // The mounts have no place in any tree: they are gone with their descriptors, whatever happens to us.
      for (const mount of mounts)
        roots.push(withFd(openLayers(mount), (fd) => openat2(fd, '.', O.RDONLY | O.DIRECTORY)))
      new Reapplier(disk, sources, roots).apply(packed.flatMap(unpackChanges))
      for (const root of roots) syncfs(root)
    } finally {
      for (const root of roots) close(root)
      sources.close()
    }
  },
})
