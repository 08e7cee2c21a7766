import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Missing, program, root } from '../tier/needs.ts'

/** Filesystems that a base can be on. `host` is whatever the temporary folder is on. */
export const FILESYSTEMS = ['host', 'tmpfs', 'ext4', 'xfs', 'btrfs'] as const
export type FilesystemKind = (typeof FILESYSTEMS)[number]

/** Why this machine cannot make one; a mount of an image is tried, not guessed. */
export function missingFor(kind: FilesystemKind): Missing {
  if (kind === 'host' || kind === 'tmpfs') return undefined
  return program(`mkfs.${kind}`)
}

export interface Place {
  /** An empty directory on the filesystem. */
  path: string
  remove(): void
}

/** A fresh, empty place on the wanted filesystem; loop images are sparse and small. */
export function makePlace(kind: FilesystemKind, options = ''): Place {
  const folder = mkdtempSync(join(tmpdir(), `place-${kind}-`))
  const path = join(folder, 'at')
  mkdirSync(path)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  if (kind === 'host') return { path, remove }
  if (kind === 'tmpfs')
    run('mount', ['-t', 'tmpfs', ...(options === '' ? [] : ['-o', options]), 'none', path])
  else {
    const image = join(folder, 'image')
    writeFileSync(image, '')
    truncateSync(image, 512 * 1024 * 1024)
    run(`mkfs.${kind}`, [kind === 'ext4' ? '-Fq' : '-fq', image])
    run('mount', ['-t', kind, '-o', ['loop', ...(options === '' ? [] : [options])].join(','), image, path])
  }
  return {
    path,
    remove: () => {
      run('umount', [path])
      remove()
    },
  }
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  })
}

/** Found by mounting one: many kernels are built without XFS quota. */
export function projectQuotaMissing(): Missing {
  if (root !== undefined) return root
  const tool = program('mkfs.xfs')
  if (tool !== undefined) return tool
  try {
    makePlace('xfs', 'prjquota').remove()
    return undefined
  } catch {
    return 'needs a kernel with XFS project quota'
  }
}
