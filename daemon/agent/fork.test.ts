import { describe, expect, it } from 'vitest'
import { fakeWorld, REQUESTER } from '../../test/fakes/ports.ts'
import { forkBranch, withOverlays } from './fork.ts'

describe('the bases of a branch', () => {
  it.each([
    ['are those that were asked for', ['/a', '/b'], [], ['/a', '/b']],
    ['and the places that the profile makes writable', ['/a'], ['/srv/x'], ['/a', '/srv/x']],
    ['once each', ['/a'], ['/a', '/b', '/b'], ['/a', '/b']],
    [
      'a project is seen through the home that holds it',
      ['/home/u/app', '/c'],
      ['/home/u'],
      ['/c', '/home/u'],
    ],
    ['a place in a base is a part of it', ['/home/u'], ['/home/u/.cache'], ['/home/u']],
    ['and one in another place as well', [], ['/home/u/.cache', '/home/u'], ['/home/u']],
    ['by components, not by characters', ['/home/user'], ['/home/u'], ['/home/user', '/home/u']],
  ])('%s', (_, asked, overlays, expected) => expect(withOverlays(asked, overlays)).toEqual(expected))

  it('are on record as they became', async () => {
    const world = fakeWorld()
    world.overlays = ['/base']
    const record = await forkBranch(world.ports, {
      ...{ bases: ['/base/app'], profile: 'fixture', name: null, afterwards: 'hold', budgets: {} },
      ...{ command: ['true'], cwd: '/base/app', requester: REQUESTER },
    })
    expect(record.bases.map(({ path }) => path)).toEqual(['/base'])
  })
})
