import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { describe, expect } from 'vitest'
import { forkOf } from '../../daemon/branch/committer.ts'
import { diffJob } from '../../daemon/branch/diff.ts'
import { workerPath } from '../../daemon/lib/assets.ts'
import { needs, root } from '../tier/needs.ts'
import { CommitGround } from './commit-ground.ts'

const FILES = 30_000
const PER_FOLDER = 300
/**
 * Of each thread. What both hold of a change is one record, outside the heap: with an object for each change, each step
 * of the plan and each line of the journal two thirds as many files did not fit into it.
 */
const HEAP_MB = 48
/** Of the whole process, which took 98 here: Node alone takes 50, and how soon it collects is its own affair. */
const PEAK_MB = 150

const child = fileURLToPath(new URL('memory-child.mjs', import.meta.url))
const it = needs(root)

function fill(place: string, text: string): void {
  for (let file = 0; file < FILES; file++) {
    const folder = join(place, `folder-${Math.floor(file / PER_FOLDER)}`)
    if (file % PER_FOLDER === 0) mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `file-${file}`), `${text} ${file}`)
  }
}

describe('a diff and a commit of many files', () => {
  const ground = new CommitGround()

  it(`hold ${FILES} changes in a heap of ${HEAP_MB} MB`, { timeout: 240_000 }, async () => {
    fill(ground.base, 'old')
    const branch = await ground.fork()
    const view = branch.mount()
    fill(view, 'new')
    branch.unmount()
    const { record } = branch
    const job = {
      ...{ commit: 'c23456789bcd', branch: record.id, digest: '', part: false, reverts: null },
      ...{
        requester: record.requester,
        at: record.createdAt,
        forkedAtNs: forkOf(record),
        allowSetuid: false,
      },
      bases: record.bases.map(({ path, dev }) => ({ path, dev })),
    }
    const diff = diffJob(record, ground.store.directory(record.id))
    const land = { store: ground.store.root, diff, filesDigest: '', job, packed: [], hasLanded: false }
    const file = join(ground.place, 'call')
    writeFileSync(file, serialize({ diff, land }))
    const folder = dirname(workerPath('commit'))
    const done = spawnSync(process.execPath, [child, folder, file, String(HEAP_MB)], { encoding: 'utf8' })
    expect(done.stderr).toBe('')
    const { files, peak } = JSON.parse(done.stdout) as { files: number; peak: number }
    console.log(`${files} files: ${Math.round(peak)} MB at most`)
    expect(files).toBe(FILES)
    expect(readFileSync(join(ground.base, 'folder-7', 'file-2222'), 'utf8')).toBe('new 2222')
    expect(peak).toBeLessThan(PEAK_MB)
  })
})
