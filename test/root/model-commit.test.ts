import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { WorkerCommitter } from '../../daemon/branch/committer.ts'
import { needs, program, root } from '../tier/needs.ts'
import { TestStore } from './branches.ts'
import { describeTree, diffHere, NO_HOOKS } from './commit-ground.ts'
import { type FilesystemKind, makePlace, missingFor, type Place } from './filesystems.ts'
import { makeBase, type Operation, operations, perform } from './model-operations.ts'

/** Per filesystem; `PUZZLED_MODEL_SEED` runs a printed seed again. */
const RUNS = Number(process.env.PUZZLED_MODEL_RUNS ?? 1000)
const seed = process.env.PUZZLED_MODEL_SEED
const MINUTES = 60_000

/**
 * A time that the clock gave differs between two runs of the same operations; one that `utimes` gave does not. And the
 * time of a directory of the base in which no name came or went is not part of a changeset (docs/decisions/diff.md).
 */
function comparable(lines: readonly string[], names: ReadonlySet<string>): string[] {
  return lines.map((line) => {
    const [path = '', kind, mode, owner, time = '0', ...rest] = line.split(' ')
    const given = BigInt(time) < 1_000_000_000_000_000n
    const shown = names.has(path) ? 'any time' : given ? time : 'the clock'
    return [path, kind, mode, owner, shown, ...rest].join(' ')
  })
}

/** Directories whose entries are the same, by name and type, in both trees. */
function quietDirectories(before: readonly string[], after: readonly string[]): Set<string> {
  const entries = (lines: readonly string[]): Map<string, string> => {
    const found = new Map<string, string>()
    for (const line of lines) {
      const [path = '', kind = ''] = line.split(' ')
      if (kind === 'dir') found.set(path, found.get(path) ?? '')
      if (path === '/') continue
      const parent = path.slice(0, path.lastIndexOf('/')) || '/'
      found.set(parent, `${found.get(parent) ?? ''} ${path}:${kind}`)
    }
    return found
  }
  const [old, fresh] = [entries(before), entries(after)]
  return new Set([...fresh].filter(([path, names]) => old.get(path) === names).map(([path]) => path))
}

for (const kind of ['host', 'xfs'] as const satisfies readonly FilesystemKind[])
  describe(`operations on ${kind}`, () => {
    const missing = [root, missingFor(kind), program('setfattr')]
    const ready = missing.every((reason) => reason === undefined)
    let place: Place
    let store: TestStore
    beforeAll(() => {
      if (!ready) return
      place = makePlace(kind)
      store = new TestStore(place.path)
      for (const folder of ['journal', 'staging', 'trash'])
        mkdirSync(join(store.root, folder), { mode: 0o700 })
    })
    afterAll(() => {
      if (!ready) return
      store.remove()
      place.remove()
    })

    async function runBoth(committer: WorkerCommitter, sequence: readonly Operation[]): Promise<void> {
      const base = join(place.path, 'base')
      const direct = join(place.path, 'direct')
      for (const tree of [base, direct]) {
        mkdirSync(tree)
        makeBase(tree)
      }
      const before = describeTree(base)
      const branch = await store.fork([base])
      branch.record = { ...branch.record, createdAt: new Date(Date.now() + 1).toISOString() }
      try {
        const view = branch.mount()
        for (const operation of sequence)
          expect(perform(view, operation), JSON.stringify(operation)).toBe(perform(direct, operation))
        const seen = describeTree(view)
        branch.unmount()
        const changeset = diffHere(branch.record, store)
        if (changeset.changes.length > 0) await committer.commit(branch.record, changeset, NO_HOOKS)
        const landed = describeTree(base)
        const quiet = quietDirectories(before, landed)
        expect(comparable(landed, quiet)).toEqual(comparable(describeTree(direct), quiet))
        // Against the branch's own view nothing is left to the clock.
        const loud = (lines: readonly string[]): string[] =>
          lines.filter((line) => !quiet.has(line.split(' ')[0] ?? ''))
        expect(loud(landed)).toEqual(loud(seen))
      } finally {
        branch.unmount()
        for (const tree of [base, direct, store.directory(branch.record.id)])
          rmSync(tree, { recursive: true, force: true })
      }
    }

    needs(...missing)(
      `in a branch that is committed leave the same tree as the same operations run directly (${RUNS} sequences)`,
      async () => {
        const committer = new WorkerCommitter(store, () => new Date())
        try {
          await fc.assert(
            fc.asyncProperty(operations, (sequence) => runBoth(committer, sequence)),
            { numRuns: RUNS, ...(seed === undefined ? {} : { seed: Number(seed) }) },
          )
        } finally {
          await committer.close()
        }
      },
      15 * MINUTES,
    )
  })
