import { describe, expect, it } from 'vitest'
import { agentIdentity } from './identity.ts'
import { inMountOrder, missingDirectories, type Place } from './places.ts'
import { FACTS, layersOf, placesOf, planOf } from './plan.fixture.ts'
import { rootPlaces } from './root-places.ts'
import { opsOf } from './spawn-plan.ts'

const paths = (places: readonly Place[]): string[] => places.map((place) => place.path)
const at = (places: readonly Place[], path: string): Place | undefined =>
  places.find((place) => place.path === path)
const names = (change = {}): string[] => opsOf(planOf(change)).map((op) => op.name)

describe('the places of the root', () => {
  it('come parents first', () => {
    const order = paths(placesOf())
    for (const [child, parent] of [
      ['/home/u/app', '/home/u'],
      ['/etc/shadow', '/etc'],
      ['/dev/shm', '/dev'],
      ['/proc/kcore', '/proc'],
    ] as const)
      expect(order.indexOf(child)).toBeGreaterThan(order.indexOf(parent))
  })

  it('sort by name of component, not by character', () => {
    const place = (path: string): Place => ({ kind: 'mask', path, of: 'directory' })
    expect(paths(inMountOrder([place('/a-b'), place('/a/b'), place('/a')]))).toEqual(['/a', '/a/b', '/a-b'])
  })

  it('let a base replace a system directory, and keep its secrets masked', () => {
    const places = placesOf({ layers: [layersOf('/etc')] })
    expect(at(places, '/etc')?.kind).toBe('overlay')
    expect(at(places, '/etc/shadow')?.kind).toBe('mask')
  })

  it('leave out a private home that a base shows', () => {
    expect(at(placesOf({ layers: [layersOf('/home/u')] }), '/home/u')?.kind).toBe('overlay')
    expect(at(placesOf({ layers: [layersOf('/home')] }), '/home/u')).toBeUndefined()
    expect(at(placesOf({ profile: { home: 'hidden' } }), '/home/u')).toBeUndefined()
  })

  it.each(['/', '/proc/1', '/dev', '/sys/fs', 'relative', '/a/../b', '/a//b', '/a/', '/a\0b'])(
    'refuse the base %j',
    (base) => expect(() => placesOf({ layers: [layersOf(base)] })).toThrow(/Base|not a canonical/),
  )

  it('name the missing path of a profile, unless it is optional', () => {
    const mounts = [{ path: '/srv/tools', mode: 'ro', optional: false, why: 'tools' }] as const
    expect(() => placesOf({ profile: { mounts } })).toThrow(
      'Profile "test" mounts "/srv/tools", which does not exist',
    )
    expect(at(placesOf({ profile: { mounts: [{ ...mounts[0], optional: true }] } }), '/srv/tools')).toBe(
      undefined,
    )
  })

  it('are writable where the profile says so, as a base or a part of one, and nowhere else', () => {
    const mounts = [{ path: '/srv/tools', mode: 'rw-overlay', optional: false, why: 'tools' }] as const
    const facts = { paths: { '/srv/tools': { kind: 'directory', real: '/srv/tools' } } } as const
    const places = (base: string): Place[] =>
      placesOf({ profile: { mounts }, facts, layers: [layersOf(base)] })
    expect(at(places('/srv/tools'), '/srv/tools')?.kind).toBe('overlay')
    expect(at(places('/srv'), '/srv/tools')).toBeUndefined()
    expect(() => places('/home/u/app')).toThrow('makes "/srv/tools" writable, but it has no layers')
  })

  it('are of the system only what the profile shows, links as links', () => {
    const places = placesOf()
    expect(at(places, '/bin')).toEqual({ kind: 'link', path: '/bin', target: 'usr/bin' })
    expect(at(places, '/usr')).toMatchObject({ kind: 'bind', source: '/usr' })
    const bare = rootPlaces({
      profile: { name: 'bare', mounts: [], home: 'hidden', exec: { allow: 'any', deny: [] } },
      layers: [],
      nestedReadOnly: [],
      facts: FACTS,
      home: '/home/u',
      files: [],
    })
    expect(paths(bare).filter((path) => /^.(usr|bin|etc)/.test(path))).toEqual([])
  })

  it('show nothing of the kernel’s below a mount, and are refused where they are that', () => {
    const mounts = [{ path: '/srv/tools', mode: 'ro', optional: false, why: 'tools' }] as const
    const paths = { '/srv/tools': { kind: 'directory', real: '/srv/tools' } } as const
    const facts = (path: string) => ({ paths, kernelMounts: [{ path, kind: 'directory' }] as const })
    const below = placesOf({ profile: { mounts }, facts: facts('/srv/tools/root/proc') })
    expect(at(below, '/srv/tools/root/proc')).toMatchObject({ kind: 'mask' })
    expect(at(placesOf({ facts: facts('/home/u/app/proc') }), '/home/u/app/proc')).toBeUndefined()
    for (const path of ['/srv', '/srv/tools'])
      expect(() => placesOf({ profile: { mounts }, facts: facts(path) })).toThrow('own filesystem')
  })

  it('show a linked mount under the name that was asked for', () => {
    const mounts = [{ path: '/srv/tools', mode: 'ro', optional: false, why: 'tools' }] as const
    const facts = { paths: { '/srv/tools': { kind: 'directory', real: '/data/tools' } } } as const
    expect(at(placesOf({ profile: { mounts }, facts }), '/srv/tools')).toMatchObject({
      kind: 'bind',
      source: '/data/tools',
    })
  })

  it('hide only what would be seen', () => {
    const mounts = [
      { path: '/usr/secret', mode: 'hidden', optional: false, why: 'x' },
      { path: '/srv/other', mode: 'hidden', optional: false, why: 'x' },
    ] as const
    const facts = {
      paths: {
        '/usr/secret': { kind: 'directory', real: '/usr/secret' },
        '/srv/other': { kind: 'directory', real: '/srv/other' },
      },
    } as const
    const places = placesOf({ profile: { mounts }, facts })
    expect(at(places, '/usr/secret')).toMatchObject({ kind: 'mask', of: 'directory' })
    expect(at(places, '/srv/other')).toBeUndefined()
  })
})

describe('mount points', () => {
  const tmp: Place = { kind: 'tmpfs', path: '/tmp', size: '1m', mode: 0o1777, own: false }
  const base: Place = { kind: 'overlay', path: '/tmp/a/b', layers: layersOf('/tmp/a/b') }

  it('are made in our own tmpfs, each once', () => {
    expect(missingDirectories(tmp, [])).toEqual(['/tmp'])
    expect(missingDirectories(base, [tmp])).toEqual(['/tmp/a', '/tmp/a/b'])
    const second: Place = { kind: 'overlay', path: '/tmp/a/c', layers: layersOf('/tmp/a/c') }
    expect(missingDirectories(second, [tmp, base])).toEqual(['/tmp/a/c'])
  })

  it('are never made in a base or a system directory', () => {
    const nested: Place = { kind: 'overlay', path: '/tmp/a/b/c', layers: layersOf('/tmp/a/b/c') }
    expect(missingDirectories(nested, [tmp, base])).toEqual([])
    const change = { layers: [layersOf('/usr/local/app'), layersOf('/home/u/app')] }
    const made = names(change).filter((name) => name.startsWith('make directory'))
    expect(made).not.toContain('make directory "/usr/local/app"')
    expect(made).toContain('make directory "/home/u/app"')
  })

  it('below a private home belong to the agent', () => {
    const made = names({ layers: [layersOf('/home/u/src/app')] })
    expect(made).toContain('give "/home/u/src" to the agent')
    expect(made).not.toContain('give "/home/u/src/app" to the agent')
  })
})

describe('the overlay', () => {
  it('names layers relative to open descriptors, so that no path of the store is seen', () => {
    const overlay = opsOf(planOf()).filter((op) => op.call === 'fsconfig' && op.name.includes('overlay on'))
    const values = overlay.map((op) =>
      op.args[3] instanceof Uint8Array ? Buffer.from(op.args[3]).toString() : '',
    )
    expect(values.join()).not.toContain('/store')
    expect(values).toContain('.\0')
  })

  it('gives all lower layers in one string to kernels before 6.8', () => {
    const old = names({ facts: { ...FACTS, kernel: [6, 1] } })
    expect(old).toContain('set lowerdir of the overlay on "/home/u/app"')
    expect(old.join()).not.toContain('lowerdir+')
  })

  it('shifts owners when the agent is not the owner', () => {
    const shifted = names({ requester: { uid: 0, gid: 0, groups: [] }, baseOwner: 0 })
    expect(shifted).toContain('map the owners of the base of "/home/u/app"')
    expect(names().join()).not.toContain('map the owners')
  })

  it('parks shifted layers in this namespace for kernels before 6.15, and unparks each', () => {
    const shifted = { requester: { uid: 0, gid: 0, groups: [] }, baseOwner: 0 }
    const count = (kernel: [number, number], start: string): number =>
      names({ ...shifted, facts: { ...FACTS, kernel } }).filter((name) => name.startsWith(start)).length
    expect(count([6, 12], 'park ')).toBe(2)
    expect(count([6, 12], 'unpark ')).toBe(2)
    expect(count([6, 18], 'park ')).toBe(0)
  })
})

describe('who the agent is', () => {
  const unprivileged = { uid: 61000, gid: 61000 }

  it('is the requester, without root’s group', () => {
    const identity = agentIdentity(
      { uid: 1000, gid: 1000, groups: [0, 27] },
      { uid: 5, gid: 5 },
      unprivileged,
    )
    expect(identity).toEqual({ uid: 1000, gid: 1000, groups: [27], shift: null })
  })

  it('is never host root', () => {
    const root = { uid: 0, gid: 0, groups: [0] }
    expect(agentIdentity(root, { uid: 1000, gid: 1000 }, unprivileged)).toMatchObject({
      uid: 1000,
      gid: 1000,
    })
    expect(agentIdentity(root, { uid: 1000, gid: 0 }, unprivileged).gid).toBe(61000)
    expect(agentIdentity(root, { uid: 0, gid: 0 }, unprivileged)).toMatchObject({
      uid: 61000,
      shift: { uid: 0, gid: 0 },
    })
  })
})
