import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { attach, mountDetached, umount2 } from '../../../daemon/kernel/mount.ts'
import { openRoot, withFd } from '../../../daemon/kernel/paths.ts'
import {
  getProject,
  projectQuota,
  projectUsage,
  setProject,
  setProjectLimits,
} from '../../../daemon/kernel/quota.ts'

/** The data disk of the VM: XFS with prjquota. */
const DATA = '/data'
const MiB = 2 ** 20

describe('project quota on XFS, through the upper layer of an overlay', () => {
  const store = mkdtempSync(join(DATA, 'quota-'))
  const path = (name: string): string => join(store, name)
  const folders = ['base', 'layer', 'layer/upper', 'layer/work', 'view'].map(path)
  let project = 4000

  const inBranch = (limits: { bytes: number; inodes: number }, run: (view: string) => void): void => {
    const id = ++project
    for (const folder of folders) mkdirSync(folder)
    withFd(openRoot(path('layer')), (fd) => {
      setProject(fd, id)
      setProjectLimits(fd, 'xfs', id, limits)
    })
    for (const folder of folders.slice(2, 4)) withFd(openRoot(folder), (fd) => setProject(fd, id))
    const options = [
      ['lowerdir', path('base')],
      ['upperdir', path('layer/upper')],
      ['workdir', path('layer/work')],
    ] as const
    withFd(mountDetached({ type: 'overlay', options, attributes: 0 }), (mount) =>
      withFd(openRoot(path('view')), (target) => attach(mount, target)),
    )
    try {
      run(path('view'))
    } finally {
      umount2(path('view'))
      for (const folder of ['base', 'layer', 'view']) rmSync(path(folder), { recursive: true })
    }
  }

  afterAll(() => rmSync(store, { recursive: true, force: true }))

  it('is enforced, says the probe', () => {
    const state = withFd(openRoot(DATA), (fd) => projectQuota(fd, 'xfs'))
    expect(state).toMatchObject({ enforced: true })
  })

  it('write() gets ENOSPC at the limit of bytes, and not before', () => {
    inBranch({ bytes: 8 * MiB, inodes: 0 }, (view) => {
      writeFileSync(join(view, 'fits'), Buffer.alloc(4 * MiB))
      const write = (): void => writeFileSync(join(view, 'too-much'), Buffer.alloc(16 * MiB))
      expect(write).toThrow(expect.objectContaining({ code: 'ENOSPC' }))
      const usage = withFd(openRoot(path('layer/upper')), (fd) => projectUsage(fd, 'xfs', project))
      expect(usage.bytes).toBe(8 * MiB)
      expect(usage.usedBytes).toBeGreaterThan(4 * MiB)
      expect(usage.usedBytes).toBeLessThanOrEqual(8 * MiB)
    })
  })

  it('creating a file gets ENOSPC at the limit of inodes', () => {
    inBranch({ bytes: 0, inodes: 20 }, (view) => {
      const create = (): void => {
        for (let n = 0; n < 40; n++) writeFileSync(join(view, `file-${n}`), '')
      }
      expect(create).toThrow(expect.objectContaining({ code: 'ENOSPC' }))
    })
  })

  it('without a limit the same writes succeed', () => {
    inBranch({ bytes: 0, inodes: 0 }, (view) => {
      writeFileSync(join(view, 'much'), Buffer.alloc(20 * MiB))
      for (let n = 0; n < 40; n++) writeFileSync(join(view, `file-${n}`), '')
    })
  })

  it('new entries below the layer belong to its project', () => {
    inBranch({ bytes: 0, inodes: 0 }, (view) => {
      writeFileSync(join(view, 'file'), '')
      const real = openSync(path('layer/upper/file'), 'r')
      expect(getProject(real).project).toBe(project)
      closeSync(real)
    })
  })
})
