import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../tier/needs.ts'
import { KillGround } from './kill-ground.ts'
import { COMMIT_POINTS, comparable } from './kill-points.ts'

/** Those at which INTENT was not yet on disk: the base must be the old one. */
const BEFORE_INTENT = COMMIT_POINTS.slice(0, 6)
const RECOVERY_POINTS = ['recover.opened', 'commit.leftovers-removed', ...COMMIT_POINTS.slice(9)]

let ground: KillGround | undefined
afterEach(() => ground?.remove())

/** The tree of a commit that nobody kills. */
let fresh = ''

beforeAll(() => {
  if (root !== undefined) return
  const other = new KillGround()
  expect(other.run('land', other.landCall(), '')).toMatchObject({ kind: 'result' })
  fresh = comparable(other.tree)
  other.remove()
})

function makeGround(): { ground: KillGround; old: string } {
  ground = new KillGround()
  return { ground, old: comparable(ground.tree) }
}

describe.skipIf(root)('a commit killed by SIGKILL', () => {
  it.each(COMMIT_POINTS)('at %s is old or new after recovery', (point) => {
    const { ground, old } = makeGround()
    const before = ground.tree
    expect(ground.run('land', ground.landCall(), `${point}=kill`)).toBeNull()
    const fates = ground.recover()
    const now = comparable(ground.tree)
    if ((BEFORE_INTENT as readonly string[]).includes(point)) expect(ground.tree).toBe(before)
    else expect(now).toBe(fresh)
    expect([old, fresh]).toContain(now)
    expect(ground.leftovers(now === fresh)).toEqual([])
    expect(fates?.every(({ fate }) => fate !== 'stuck')).toBe(true)
  })

  it.each(RECOVERY_POINTS)('and again during recovery at %s', (point) => {
    for (const first of [
      'commit.staged-synced',
      'commit.after-intent',
      'commit.applied-swap',
      'journal.done-written',
    ]) {
      const { ground, old } = makeGround()
      expect(ground.run('land', ground.landCall(), `${first}=kill`)).toBeNull()
      // A recovery that has nothing to do at this point ends by itself.
      ground.recover(`${point}=kill`)
      expect(ground.recover()).not.toBeNull()
      const now = comparable(ground.tree)
      expect([old, fresh], `${first} then ${point}`).toContain(now)
      expect(now === fresh, `${first} then ${point}`).toBe(first !== 'commit.staged-synced')
      expect(ground.leftovers(now === fresh)).toEqual([])
      ground.remove()
    }
  })

  it.each(['ENOSPC', 'EIO', 'EDQUOT', 'EROFS'])('is old or new when a step fails with %s', (errno) => {
    for (const point of COMMIT_POINTS) {
      const { ground, old } = makeGround()
      const answer = ground.run('land', ground.landCall(), `${point}=${errno}`)
      ground.recover()
      const now = comparable(ground.tree)
      expect([old, fresh], `${errno} at ${point}`).toContain(now)
      if (answer?.kind === 'result') expect(now).toBe(fresh)
      expect(ground.leftovers(now === fresh), `${errno} at ${point}`).toEqual([])
      ground.remove()
    }
  })
})
