import { describe, expect } from 'vitest'
import { LayerSources } from '../../daemon/branch/commit-sources.ts'
import { diffJob } from '../../daemon/branch/diff.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { Reapplier } from '../../daemon/branch/rebase-apply.ts'
import { needs, root } from '../tier/needs.ts'
import { CommitGround, sh } from './commit-ground.ts'

describe('hard links are made again by a rebase', () => {
  const it = needs(root)
  const ground = new CommitGround()

  it.each([
    ['of two files of the base that were alike', 'ln -f one two'],
    ['of three, and of a new name', 'ln -f one two; ln -f one three; ln one new'],
    ['of a file and what was another one', 'ln -f one other'],
    ['of a file whose mode changed as well', 'chmod 600 one; ln -f one two'],
  ])('%s', async (_, work) => {
    sh(
      'for name in one two three; do echo same > $name; done; echo different > other; touch -d @77 two',
      ground.base,
    )
    const branch = await ground.fork()
    const seen = ground.work(branch, (view) => sh(work, view))
    const { changes } = await ground.diff(branch)
    const disk = new KernelDisk()
    const { bases } = diffJob(branch.record, ground.store.directory(branch.record.id))
    const sources = new LayerSources(
      disk,
      bases.map(({ uppers }) => [...uppers]),
    )
    const again = await ground.fork()
    // Without the root: where no name came or went its time is nobody's change.
    expect(
      ground
        .work(again, (view) => {
          const top = disk.openRoot(view)
          new Reapplier(disk, sources, [top]).apply(changes)
          disk.close(top)
        })
        .slice(1),
    ).toEqual(seen.slice(1))
    sources.close()
  })
})
