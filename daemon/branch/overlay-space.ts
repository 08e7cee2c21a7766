import { createHash } from 'node:crypto'
import type { Grant } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'
import { fstatfs } from '../kernel/file-data.ts'
import { openRoot, withFd } from '../kernel/paths.ts'
import { projectQuota, projectUsage, setProject, setProjectLimits } from '../kernel/quota.ts'
import { PuzzledError } from '../lib/errors.ts'

/** Bytes and inodes that a branch's layers may take; 0 is no limit. */
interface Space {
  bytes: number
  inodes: number
}

/**
 * Limits what the layers can take on disk, so that `write()` itself fails at the limit. A profile that requires
 * `project-quota` is refused where the store's filesystem has none.
 */
export async function limitSpace(layers: string, id: string, profile: Profile): Promise<Grant[]> {
  const { disk, inodes } = profile.budgets.limits
  if (disk === undefined && inodes === undefined) return []
  const space = { bytes: disk ?? 0, inodes: inodes ?? 0 }
  return withFd(openRoot(layers), (fd) => {
    const { type } = fstatfs(fd)
    const quota = projectQuota(fd, type)
    if (quota.enforced) return [grantProject(fd, type, id, space)]
    if (profile.require.includes('project-quota'))
      throw new PuzzledError('feature-missing', `The store's ${type} has no project quota: ${quota.detail}`, {
        hint: 'Put the store on XFS mounted with prjquota.',
        data: { feature: 'project-quota', filesystem: type },
      })
    return [
      {
        what: 'disk space',
        requested: show(space),
        granted: `measured now and then: this ${type} has no project quota (puzzlectl doctor)`,
        full: false,
      },
    ]
  })
}

function grantProject(fd: number, type: string, id: string, space: Space): Grant {
  const project = freeProject(fd, type, id)
  setProjectLimits(fd, type, project, space)
  setProject(fd, project)
  return { what: 'disk space', requested: show(space), granted: `project ${project} on ${type}`, full: true }
}

/** A project id that nothing on the filesystem uses, found from the branch's id so that a retry finds it again. */
function freeProject(fd: number, type: string, id: string): number {
  for (let attempt = 0; attempt < 64; attempt++) {
    const hash = createHash('sha256').update(`${id}/${attempt}`).digest()
    // Above what people number by hand in /etc/projid, below 2^31: some tools read it signed.
    const project = 0x4000_0000 + (hash.readUInt32LE(0) % 0x3fff_ffff)
    const usage = projectUsage(fd, type, project)
    if (usage.usedInodes === 0 && usage.bytes === 0 && usage.inodes === 0) return project
  }
  throw new PuzzledError('no-space', 'No free project id was found in 64 tries')
}

const show = (space: Space): string =>
  [space.bytes > 0 ? `${space.bytes} bytes` : '', space.inodes > 0 ? `${space.inodes} inodes` : '']
    .filter(Boolean)
    .join(', ')
