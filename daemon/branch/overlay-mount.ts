import { attach, MOUNT_ATTR, mountDetached } from '../kernel/mount.ts'
import { close, O, openRoot, withFd } from '../kernel/paths.ts'
import type { LayerMount } from './overlay.ts'

/** The options that the file side rests on; `userxattr` only where there is no CAP_SYS_ADMIN over the filesystem. */
export const OVERLAY_OPTIONS = [
  ['metacopy', 'off'],
  ['redirect_dir', 'nofollow'],
  ['index', 'off'],
  ['xino', 'auto'],
] as const

/**
 * Mounts a branch's view of one base at a directory, detached first. Directories are handed over as
 * `/proc/self/fd/N`: an option value may be 255 bytes, and a path may be longer or hold `:` and `,`.
 * `view` mounts it read-only for people: the writable layer becomes the topmost lower one.
 */
export function mountLayers(mount: LayerMount, target: string, how: 'agent' | 'view' = 'agent'): void {
  withFd(openLayers(mount, how), (fd) => withFd(openRoot(target, O.PATH), (place) => attach(fd, place)))
}

/** The same without a place: nobody else can reach it, and it is gone when its last descriptor is closed. */
export function openLayers(mount: LayerMount, how: 'agent' | 'view' = 'agent'): number {
  const lowers = how === 'view' ? [mount.upper, ...mount.lowers] : mount.lowers
  const opened: number[] = []
  const open = (path: string): string => {
    opened.push(openRoot(path, O.PATH))
    return `/proc/self/fd/${opened.at(-1)}`
  }
  try {
    const layers = lowers.map((path) => ['lowerdir+', open(path)] as const)
    const writable =
      how === 'view'
        ? []
        : ([
            ['upperdir', open(mount.upper)],
            ['workdir', open(mount.work)],
          ] as const)
    const attributes = MOUNT_ATTR.NOSUID | MOUNT_ATTR.NODEV | (how === 'view' ? MOUNT_ATTR.RDONLY : 0)
    return mountDetached({
      type: 'overlay',
      source: 'puzzled',
      options: [...layers, ...writable, ...OVERLAY_OPTIONS],
      attributes,
    })
  } finally {
    for (const fd of opened) close(fd)
  }
}
