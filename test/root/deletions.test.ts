import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { countDeletions } from '../../daemon/branch/deletion-walk.ts'
import { needs, root } from '../tier/needs.ts'
import { DiffGround, write } from './diff-ground.ts'

const it = needs(root)
const ground = new DiffGround()

function tree(path: string): void {
  mkdirSync(join(path, 'a/b/c'), { recursive: true })
  for (const name of ['a/1', 'a/2', 'a/b/3', 'a/b/c/4', 'top']) write(join(path, name), name)
}

/** What the meter counts and what the changeset will say. */
async function counted(act: (view: string) => void, most = 1000): Promise<[number, number]> {
  tree(ground.base)
  const { totals } = await ground.diffOf(act)
  const upper = join(ground.store.directory('branch-1'), 'layers/001/0/upper')
  return [countDeletions({ upper, base: ground.base, most }), totals.deletions]
}

describe('deletions are counted as the changeset will count them', () => {
  const ROWS: readonly [string, number, (view: string) => void][] = [
    ['nothing', 0, (view) => write(join(view, 'new'), 'x')],
    ['a file', 1, (view) => unlinkSync(join(view, 'top'))],
    [
      'a file that was never there',
      0,
      (view) => {
        write(join(view, 'new'), 'x')
        unlinkSync(join(view, 'new'))
      },
    ],
    ['a directory with all that it held', 7, (view) => rmSync(join(view, 'a'), { recursive: true })],
    [
      'a directory that was made anew with two names of the old',
      4,
      (view) => {
        rmSync(join(view, 'a'), { recursive: true })
        mkdirSync(join(view, 'a/b'), { recursive: true })
        write(join(view, 'a/1'), 'other')
      },
    ],
    [
      'below a directory that became a file',
      6,
      (view) => {
        rmSync(join(view, 'a'), { recursive: true })
        write(join(view, 'a'), 'file')
      },
    ],
    [
      'below a directory that became a link to another',
      6,
      (view) => {
        rmSync(join(view, 'a'), { recursive: true })
        symlinkSync('/usr', join(view, 'a'))
      },
    ],
    ['a file that was moved', 1, (view) => renameSync(join(view, 'a/b/3'), join(view, 'a/3'))],
    [
      'nothing, where content was replaced',
      0,
      (view) => {
        write(join(view, 'other'), 'x')
        renameSync(join(view, 'other'), join(view, 'top'))
      },
    ],
  ]
  for (const [what, expected, act] of ROWS)
    it(what, async () => {
      const [walked, diffed] = await counted(act)
      expect(walked).toBe(diffed)
      expect(walked).toBe(expected)
    })

  it('and not further than to the limit', async () => {
    const [walked] = await counted((view) => rmSync(join(view, 'a'), { recursive: true }), 3)
    expect(walked).toBe(3)
  })
})
