import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../lib/assets.ts'
import { ProfileStore } from './profiles.ts'
import { type ReadyPlaces, readyProfile, resolveProfile } from './ready-profiles.ts'

const shipped = join(packageRoot(), 'policies/profiles')
const store = new ProfileStore({ directories: [shipped] })
const names = (await store.list()).map(({ name }) => name)

describe('profiles that the build resolved', () => {
  let root: string
  let at: ReadyPlaces

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'ready-'))
    at = {
      ready: join(packageRoot(), 'dist/profiles'),
      shipped: join(root, 'shipped'),
      own: join(root, 'own'),
    }
    for (const folder of [at.shipped, at.own]) mkdirSync(folder)
    for (const name of names) copyFileSync(join(shipped, `${name}.yaml`), join(at.shipped, `${name}.yaml`))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  it.each(names)('%s is what reading its files gives', async (name) => {
    expect(await readyProfile(name, at)).toEqual((await store.describe(name)).profile)
    expect(await resolveProfile(name, '/home/me')).toEqual(await store.resolve(name, { home: '/home/me' }))
  })

  it('do not count when a file has changed by one byte', async () => {
    writeFileSync(join(at.shipped, 'standard.yaml'), '\n', { flag: 'a' })
    expect(await readyProfile('standard', at)).toBeUndefined()
  })

  it('do not count when what they extend has changed', async () => {
    const child = (await Promise.all(names.map((name) => store.describe(name)))).find(
      ({ files }) => files.length > 1,
    )
    expect(await readyProfile(child?.profile.name ?? '', at)).toBeDefined()
    rmSync(child?.files.at(-1)?.replace(shipped, at.shipped) ?? '')
    expect(await readyProfile(child?.profile.name ?? '', at)).toBeUndefined()
  })

  it('do not count when the operator has one of the same name', async () => {
    writeFileSync(join(at.own, 'standard.yaml'), '')
    expect(await readyProfile('standard', at)).toBeUndefined()
  })

  it.each(['./standard.yaml', '../profiles/standard', 'no-such', ''])('has none for %j', async (name) => {
    expect(await readyProfile(name, at)).toBeUndefined()
  })
})
