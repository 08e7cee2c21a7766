import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../lib/assets.ts'
import { ProfileStore } from './profiles.ts'

const shipped = join(packageRoot(), 'policies/profiles')
let own = ''

beforeAll(async () => {
  own = await mkdtemp(join(tmpdir(), 'puzzled-profiles-'))
})
afterAll(() => rm(own, { recursive: true }))

const write = (name: string, rest: string) =>
  writeFile(
    join(own, `${name}.yaml`),
    `format: puzzled/profile/v1\nname: ${name}\ndescription: For this test.\n${rest}`,
  )

describe('ProfileStore', () => {
  it('resolves every profile that is shipped, each by its own name', async () => {
    const store = new ProfileStore({ directories: [shipped], home: '/home/u' })
    const listing = await store.list()
    expect(listing.filter(({ problem }) => problem !== undefined)).toEqual([])
    for (const { name } of listing) {
      const { profile, sha256 } = await store.resolve(name)
      expect(profile.name).toBe(name)
      expect(sha256).toMatch(/^[0-9a-f]{64}$/)
      expect(JSON.stringify(profile)).not.toContain('"~/')
      // Nothing uses these for an agent (see `doctor`): a profile that names them promises what nobody does.
      for (const unused of ['bpf-lsm', 'fanotify', 'overlay-userxattr'] as const)
        expect([...profile.require, ...profile.prefer]).not.toContain(unused)
    }
  })

  it('prefers the first directory and suggests the nearest name', async () => {
    await write('standard', '')
    const store = new ProfileStore({ directories: [own, shipped] })
    expect((await store.resolve('standard')).profile.description).toBe('For this test.')
    await expect(store.resolve('standart')).rejects.toMatchObject({
      code: 'profile-invalid',
      hint: 'Did you mean "standard"?',
    })
  })

  it('does not fall through a malformed file to one of the same name', async () => {
    await write('offline', 'unknown: 1\n')
    const store = new ProfileStore({ directories: [own, shipped] })
    await expect(store.resolve('offline')).rejects.toThrow(/unknown key "unknown"/)
  })

  it('refuses loops', async () => {
    await write('a', 'extends: b\n')
    await write('b', 'extends: a\n')
    const store = new ProfileStore({ directories: [own] })
    await expect(store.resolve('a')).rejects.toThrow(/extends itself/)
  })

  it('gives equal digests to equal meanings and others to others', async () => {
    await write('one', 'budgets: { pids: 5, memory: 16MiB }\n')
    const store = new ProfileStore({ directories: [own] })
    const first = await store.resolve('one')
    await write('one', '# a comment\nbudgets:\n  memory: 16777216\n  pids: 5\n')
    expect((await store.resolve('one')).sha256).toBe(first.sha256)
    await write('one', 'budgets: { pids: 6, memory: 16MiB }\n')
    expect((await store.resolve('one')).sha256).not.toBe(first.sha256)
  })

  it('never hides less for want of a home', async () => {
    await write('keys', 'mounts: [{ path: ~/.ssh, mode: hidden, why: never for agents }]\n')
    const store = new ProfileStore({ directories: [own] })
    await expect(store.resolve('keys')).rejects.toThrow(/needs the requester's home/)
    expect((await store.resolve('keys', { home: '/home/u' })).profile.mounts[0]?.path).toBe('/home/u/.ssh')
  })
})
