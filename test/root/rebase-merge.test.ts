import { chmodSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { mayRead } from '../../daemon/branch/commit-environment.ts'
import { LayerSources } from '../../daemon/branch/commit-sources.ts'
import { forkOf } from '../../daemon/branch/committer.ts'
import { diffJob } from '../../daemon/branch/diff.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { findCollisions } from '../../daemon/branch/rebase-collisions.ts'
import { mergeCollisions } from '../../daemon/branch/rebase-merge.ts'
import type { Collision } from '../../daemon/branch/rebase-plan.ts'
import { root } from '../tier/needs.ts'
import type { TestBranch } from './branches.ts'
import { CommitGround, sh } from './commit-ground.ts'

const LINES = 'seq 1 20 > f'
const NOW = (): bigint => BigInt(Date.now()) * 1_000_000n

describe.skipIf(root)('the version that two branches began from', () => {
  const ground = new CommitGround()

  /** A branch that changed line 3, forked before another one landed a change of line 17. */
  async function late(between = 'true'): Promise<{ branch: TestBranch; endedNs: bigint; commit: string }> {
    sh(`${LINES}; sleep 0.03`, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh("sed -i 's/^3$/three/' f", view))
    sh(between, ground.base)
    const other = await ground.fork()
    ground.work(other, (view) => sh("sed -i 's/^17$/seventeen/' f", view))
    const endedNs = NOW()
    sh('sleep 0.01', ground.base)
    const { commit } = await ground.commit(other)
    return { branch, endedNs, commit }
  }

  async function collisions(
    branch: TestBranch,
    agentEndedNs: bigint | null,
    requester = branch.record.requester,
  ): Promise<Collision[]> {
    const disk = new KernelDisk()
    const { changes } = await ground.diff(branch)
    const since = (): bigint => forkOf(branch.record)
    const uppers = diffJob(branch.record, ground.store.directory(branch.record.id)).bases.map(
      (base) => base.uppers,
    )
    const layers = new LayerSources(disk, uppers)
    try {
      const may = (base: string, path: Uint8Array): boolean => mayRead(disk, requester, base, path)
      const where = { journal: join(ground.store.root, 'journal'), bases: [ground.base] }
      const found = findCollisions(disk, where.bases, changes, since)
      return mergeCollisions(disk, { ...where, layers, since, agentEndedNs, mayRead: may }, changes, found)
    } finally {
      layers.close()
    }
  }

  const merged = (found: readonly Collision[]): string =>
    Buffer.from(found[0]?.merged?.bytes ?? Buffer.from(found[0]?.message ?? 'no collision')).toString()

  it('is what the commit in between took out and kept: both sides come together', async () => {
    const { branch, endedNs, commit } = await late()
    const found = await collisions(branch, endedNs)
    expect(merged(found)).toBe(sh("seq 1 20 | sed 's/^3$/three/; s/^17$/seventeen/'", ground.base))
    expect(found[0]?.merged?.commit).toBe(commit)
  })

  it('serves as well when somebody has edited what the commit made', async () => {
    const { branch, endedNs } = await late()
    sh("sed -i 's/^10$/ten/' f", ground.base)
    const all = "seq 1 20 | sed 's/^3$/three/; s/^10$/ten/; s/^17$/seventeen/'"
    expect(merged(await collisions(branch, endedNs))).toBe(sh(all, ground.base))
  })

  it('is not taken from a commit that began after somebody had edited the file', async () => {
    const { branch, endedNs } = await late("sleep 0.03; sed -i 's/^5$/five/' f; sleep 0.03")
    expect(merged(await collisions(branch, endedNs))).toMatch(/no version from the time of the fork is kept/)
  })

  it('is not known where the agent still ran when the commit began, or nobody knows when it ended', async () => {
    const { branch } = await late()
    expect(merged(await collisions(branch, NOW()))).toMatch(/the agent may have begun from what commit/)
    expect(merged(await collisions(branch, null))).toMatch(/the agent may have begun from what commit/)
  })

  it('is not believed where the kept bytes are not those of the record, or are gone', async () => {
    const { branch, endedNs, commit } = await late()
    const kept = join(ground.store.root, 'staging', commit, '0')
    writeFileSync(kept, sh("seq 1 20 | sed 's/^3$/x/'", ground.base))
    expect(merged(await collisions(branch, endedNs))).toMatch(/the version of the fork is not kept any more/)
    await ground.committer.collect({ count: 0, ageMs: 1e12, bytes: 1e12 })
    expect(merged(await collisions(branch, endedNs))).toMatch(/no version from the time of the fork is kept/)
  })

  it('does not help where both changed the same lines, the mode, or the file is no text', async () => {
    const { branch, endedNs } = await late()
    ground.work(branch, (view) => sh("sed -i 's/^17$/agent/' f", view))
    expect(merged(await collisions(branch, endedNs))).toMatch(/both sides changed it at line 17/)
    ground.work(branch, (view) => sh("seq 1 20 > f; sed -i 's/^3$/three/' f; chmod 700 f", view))
    sh('chmod 640 f', ground.base)
    expect(merged(await collisions(branch, endedNs))).toMatch(/its mode, owner or attributes were changed/)
    ground.work(branch, (view) => sh(String.raw`chmod 644 f; printf 'a\0b' >> f`, view))
    expect(merged(await collisions(branch, endedNs))).toMatch(/it is not text/)
  })

  it('brings nothing of a file to somebody who could not read it', async () => {
    const { branch, endedNs } = await late()
    for (let at = ground.base; at.startsWith(tmpdir()); at = dirname(at)) chmodSync(at, 0o755)
    const user = { uid: 12345, gid: 12345, groups: [12345], name: 'user' }
    expect((await collisions(branch, endedNs, user))[0]?.merged).toBeDefined()
    chmodSync(join(ground.base, 'f'), 0o600)
    const refused = await collisions(branch, endedNs, user)
    expect(refused[0]?.merged).toBeUndefined()
    expect(merged(refused)).toMatch(/may not read it in the base/)
    chmodSync(join(ground.base, 'f'), 0o644)
    chmodSync(ground.base, 0o700)
    expect(merged(await collisions(branch, endedNs, user))).toMatch(/may not read it in the base/)
  })

  it('brings the mode along that only one side changed', async () => {
    const { branch, endedNs } = await late()
    ground.work(branch, (view) => sh('chmod 700 f', view))
    const found = await collisions(branch, endedNs)
    expect(found[0]?.merged?.change.new).toMatchObject({ mode: 0o700, size: merged(found).length })
  })
})
