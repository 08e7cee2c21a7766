import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { COMMIT, KillGround } from '../crash/kill-ground.ts'
import { COMMIT_POINTS, comparable } from '../crash/kill-points.ts'
import { needs, root } from '../tier/needs.ts'
import { type FilesystemKind, makePlace, missingFor, type Place } from './filesystems.ts'

/** Bases on all of these land in one commit. Where the store is on one of them, that base shares blocks with it. */
const KINDS = ['ext4', 'xfs', 'btrfs', 'tmpfs'] as const satisfies readonly FilesystemKind[]
/** Points that are passed once per entry: the later passes are in the later bases. */
const REPEATED = COMMIT_POINTS.filter(
  (point) => point.startsWith('commit.applied-') && !point.endsWith('synced'),
)
const STRIDE = 3
const MINUTES = 60_000

class Machine {
  readonly #places = new Map<FilesystemKind, Place>()
  readonly #host = mkdtempSync(join(tmpdir(), 'many-'))

  constructor() {
    for (const kind of KINDS) this.#places.set(kind, makePlace(kind))
  }

  ground(store: FilesystemKind): KillGround {
    const at = (kind: FilesystemKind): string => this.#places.get(kind)?.path ?? this.#host
    const home = join(at(store), 'home')
    mkdirSync(home)
    return new KillGround(home, KINDS.map(at))
  }

  remove(): void {
    for (const place of this.#places.values()) place.remove()
    rmSync(this.#host, { recursive: true })
  }
}

describe.each(['host', 'xfs', 'btrfs'] as const)(
  'one commit into ext4, xfs, btrfs and tmpfs, store on %s',
  (store) => {
    const it = needs(root, ...KINDS.map(missingFor))

    it('lands everywhere, or nowhere, wherever it is killed', { timeout: 15 * MINUTES }, () => {
      const machine = new Machine()
      try {
        const first = machine.ground(store)
        const old = comparable(first.tree)
        expect(first.run('land', first.landCall(), '')).toMatchObject({
          kind: 'result',
          value: { commit: COMMIT },
        })
        const fresh = comparable(first.tree)
        expect(fresh).not.toBe(old)
        first.remove()
        let killed = 0
        /** False when the commit passed the point less often than that. */
        const killAt = (point: string): boolean => {
          const ground = machine.ground(store)
          const died = ground.run('land', ground.landCall(), `${point}=kill`) === null
          expect(ground.recover()?.every(({ fate }) => fate !== 'stuck')).toBe(true)
          const now = comparable(ground.tree)
          if (now !== old) expect(now, point).toBe(fresh)
          expect(ground.leftovers(now === fresh), point).toEqual([])
          ground.remove()
          if (died) killed++
          return died
        }
        for (const point of COMMIT_POINTS) expect(killAt(point), point).toBe(true)
        for (const point of REPEATED) for (let pass = 2; killAt(`${point}#${pass}`); ) pass += STRIDE
        console.log(`store on ${store}: killed ${killed} times`)
        expect(killed).toBeGreaterThan(COMMIT_POINTS.length + REPEATED.length)
      } finally {
        machine.remove()
      }
    })
  },
)
