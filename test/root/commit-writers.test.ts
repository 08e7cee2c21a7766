import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { land } from '../../daemon/branch/commit.ts'
import type { CommitContext, CommitJob, JobHooks } from '../../daemon/branch/commit-context.ts'
import { kernelContext } from '../../daemon/branch/commit-environment.ts'
import { LayerSources } from '../../daemon/branch/commit-sources.ts'
import { diffJob } from '../../daemon/branch/diff.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { requireApproved } from '../../daemon/branch/still-approved.ts'
import type { Changeset } from '../../daemon/contract/changeset.ts'
import type { Copied } from '../../daemon/lib/disk.ts'
import { newCommitId } from '../../daemon/lib/ids.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, program, root } from '../tier/needs.ts'
import { type TestBranch, TestStore } from './branches.ts'
import { diffHere, NO_HOOKS, sh } from './commit-ground.ts'
import { type FilesystemKind, makePlace, missingFor } from './filesystems.ts'
import { LayerWriter } from './layer-writer.ts'

const { rounds: ROUNDS, timeout } = roundsOf('PUZZLED_WRITER_ROUNDS')
/** Below and above the size up to which a file is copied in one piece. */
const FILES = ['small', 'large'] as const

interface Rig {
  branch: TestBranch
  base: string
  writer: LayerWriter
  changeset: Changeset
  /** Ends the writer and gives the room back: a thousand rounds are more than an image holds. */
  end(): Promise<void>
  /** Lands the changeset on this thread. */
  /** `compared`: the layers are, once more, beside the disks. */
  land(disk?: KernelDisk, hooks?: JobHooks, compared?: boolean): Promise<'landed' | string>
}

/** A branch whose files are still held by a writer although its view is gone; reviewed while the writer rested. */
async function withWriter(
  kind: FilesystemKind,
  act: (rig: () => Promise<Rig>) => Promise<void>,
): Promise<void> {
  const place = makePlace(kind)
  const store = new TestStore(place.path)
  for (const folder of ['journal', 'staging']) mkdirSync(join(store.root, folder), { mode: 0o700 })
  const writers: LayerWriter[] = []
  let bases = 0
  try {
    await act(async () => {
      const base = join(place.path, `base-${bases++}`)
      mkdirSync(base)
      sh('head -c 65536 /dev/zero > small; echo short > large', base)
      const branch = await store.fork([base])
      branch.record = { ...branch.record, createdAt: new Date(Date.now() + 1).toISOString() }
      const view = branch.mount()
      sh('head -c 65536 /dev/urandom > small; head -c 3000000 /dev/urandom > large', view)
      const writer = new LayerWriter(
        place.path,
        FILES.map((name) => join(view, name)),
      )
      writers.push(writer)
      branch.unmount('lazily')
      const changeset = diffHere(branch.record, store)
      const end = async (): Promise<void> => {
        await writer.end()
        sh('rm -rf journal/* staging/*', store.root)
        for (const path of [base, store.directory(branch.record.id)]) rmSync(path, { recursive: true })
      }
      return { branch, base, writer, changeset, end, land: lander(branch, store, changeset) }
    })
  } finally {
    const ends = await Promise.allSettled(writers.map((writer) => writer.end()))
    store.remove()
    place.remove()
    for (const end of ends) if (end.status === 'rejected') console.error(end.reason)
  }
}

function lander(branch: TestBranch, store: TestStore, changeset: Changeset): Rig['land'] {
  return async (disk = new KernelDisk(), hooks = NO_HOOKS, compared = true) => {
    const diff = diffJob(branch.record, store.directory(branch.record.id))
    const { requester, bases } = branch.record
    const job: CommitJob = {
      ...{ commit: newCommitId(), branch: branch.record.id, digest: changeset.digest, part: false },
      ...{ reverts: null, requester, at: new Date().toISOString(), forkedAtNs: null, allowSetuid: false },
      bases: bases.map(({ path, dev }) => ({ path, dev })),
      changes: changeset.changes,
    }
    const sources = new LayerSources(
      disk,
      diff.bases.map(({ uppers }) => uppers),
    )
    const context: CommitContext = {
      ...kernelContext(store.root, requester, sources),
      disk,
      ...(compared
        ? { recheck: () => requireApproved(diff, changeset.changes, changeset.digest, false) }
        : {}),
    }
    try {
      return await land(context, job, hooks).then(
        () => 'landed',
        (error: { code?: string }) => error.code ?? String(error),
      )
    } finally {
      sources.close()
    }
  }
}

/** What the base holds against what was approved, file by file. */
function wrong({ base, changeset }: Rig): string[] {
  const disk = new KernelDisk()
  const dir = disk.openRoot(base)
  try {
    return changeset.changes
      .filter(
        ({ path, new: state }) => state?.sha256 !== undefined && disk.digest(dir, path) !== state.sha256,
      )
      .map(({ path }) => Buffer.from(path).toString())
  } finally {
    disk.close(dir)
  }
}

type CopyArguments = Parameters<KernelDisk['copyFile']>

/** The writer works exactly while a file is copied. */
class Watched extends KernelDisk {
  readonly #writer: LayerWriter

  constructor(writer: LayerWriter) {
    super()
    this.#writer = writer
  }

  override copyFile(...copy: CopyArguments): Copied {
    this.#writer.do('write')
    this.#writer.await(200)
    const copied = super.copyFile(...copy)
    this.#writer.rest()
    return copied
  }
}

/** What a commit must not do: take the approved digest for that of what it staged. */
class Trusting extends Watched {
  readonly #approved: Changeset

  constructor(writer: LayerWriter, approved: Changeset) {
    super(writer)
    this.#approved = approved
  }

  override copyFile(...copy: CopyArguments): Copied {
    const { ino } = super.copyFile(...copy)
    const change = this.#approved.changes.find(({ path }) => Buffer.compare(path, copy[1]) === 0)
    return { ino, sha256: change?.new?.sha256 ?? '' }
  }
}

/** Nor this: give the base the layer's own inode. */
class Linking extends KernelDisk {
  override copyFile(...[fromDir, from, dir, name, meta]: CopyArguments): Copied {
    this.hardLink(fromDir, from, dir, name)
    if (meta !== undefined) this.setMeta(dir, name, meta)
    return { ino: this.stat(dir, name)?.ino ?? 0, sha256: this.digest(dir, name) }
  }
}

describe.each(['host', 'xfs', 'btrfs'] as const)(
  'a process that writes on by descriptor and memory map, on %s',
  (kind) => {
    const it = needs(root, program('python3'), missingFor(kind))

    it(`at any moment of ${ROUNDS} commits: what lands is what was approved`, { timeout }, () =>
      withWriter(kind, async (fork) => {
        const seen: Record<string, number> = {}
        for (let round = 0; round < ROUNDS; round++) {
          const rig = await fork()
          rig.writer.do('bursts')
          const outcome = await rig.land()
          seen[outcome] = (seen[outcome] ?? 0) + 1
          expect(['landed', 'changed-since-review']).toContain(outcome)
          rig.writer.await(1)
          if (outcome === 'landed') expect(wrong(rig), `round ${round}`).toEqual([])
          else expect(sh('cat large; wc -c < small', rig.base)).toBe('short\n65536\n')
          await rig.end()
        }
        console.log(`${kind}: ${JSON.stringify(seen)}`)
        expect(Object.keys(seen).sort()).toEqual(['changed-since-review', 'landed'])
      }),
    )

    it('while the files are copied: the commit is refused', () =>
      withWriter(kind, async (fork) => {
        const rig = await fork()
        expect(await rig.land(new Watched(rig.writer))).toBe('changed-since-review')
        expect(sh('cat large', rig.base)).toBe('short\n')
      }))

    it('after the files were copied and hashed: nothing of it reaches the base', () =>
      withWriter(kind, async (fork) => {
        const rig = await fork()
        const late = async (): Promise<void> => {
          rig.writer.do('write')
          rig.writer.await(200)
        }
        expect(await rig.land(new KernelDisk(), { beforeIntent: late, afterIntent: late })).toBe('landed')
        rig.writer.await(500)
        expect(wrong(rig)).toEqual([])
      }))

    it('is noticed by this test where a commit trusts the digest of the layer', () =>
      withWriter(kind, async (fork) => {
        const rig = await fork()
        const trusting = new Trusting(rig.writer, rig.changeset)
        expect(await rig.land(trusting, NO_HOOKS, false)).toBe('landed')
        expect(wrong(rig)).not.toEqual([])
      }))

    it('is noticed once more by the comparison of the layers, where the copy is trusted', () =>
      withWriter(kind, async (fork) => {
        const rig = await fork()
        const trusting = new Trusting(rig.writer, rig.changeset)
        expect(await rig.land(trusting)).toBe('changed-since-review')
        expect(sh('cat large', rig.base)).toBe('short\n')
      }))

    it("is noticed by this test where a commit gives the base the layer's inode", () =>
      withWriter(kind, async (fork) => {
        const rig = await fork()
        expect(await rig.land(new Linking())).toBe('landed')
        rig.writer.do('write')
        rig.writer.await(500)
        expect(wrong(rig)).not.toEqual([])
      }))
  },
)
