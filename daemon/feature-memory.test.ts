import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FEATURE_NAMES, type FeatureName, type FeatureRow, type Features } from './contract/features.ts'
import { rememberFeatures } from './feature-memory.ts'

describe('the memory of features', () => {
  let root = ''
  let tried: (readonly FeatureName[] | undefined)[] = []
  let host: Partial<Record<FeatureName, 'have' | 'missing'>> = {}

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'features-'))
    tried = []
    host = {}
  })
  afterEach(() => {
    rmSync(root, { recursive: true })
    vi.unstubAllEnvs()
  })

  const row = (name: FeatureName): FeatureRow => {
    const state = host[name] ?? 'have'
    return { name, state, level: state === 'have' ? 1 : 0, detail: 'tried', lost: '', remedy: '' }
  }
  const probe = async (names?: readonly FeatureName[]): Promise<Features> => {
    tried.push(names)
    return Object.fromEntries(FEATURE_NAMES.map((name) => [name, row(name)])) as Features
  }
  const memory = (version = '1') => rememberFeatures(root, version, probe)

  it('tries what a start uses once, for this process and the next one', async () => {
    const first = memory()
    await first(['overlay', 'seccomp'])
    expect((await first(['overlay', 'netns'])).overlay).toMatchObject({ state: 'have' })
    await memory()(['overlay', 'seccomp', 'netns'])
    expect(tried).toEqual([['overlay', 'seccomp'], ['netns']])
  })

  it('tries everything that a start could go without each time', async () => {
    const one = memory()
    await one(['landlock', 'project-quota', 'overlay'])
    await one(['landlock', 'project-quota', 'overlay'])
    expect(tried.at(-1)).toEqual(['landlock', 'project-quota'])
  })

  it('does not keep that something is missing', async () => {
    const one = memory()
    host = { overlay: 'missing' }
    expect((await one(['overlay'])).overlay?.state).toBe('missing')
    host = {}
    expect((await one(['overlay'])).overlay?.state).toBe('have')
  })

  it.each([
    ['another version', () => undefined, '2'],
    [
      'another boot',
      () => {
        const text = readFileSync(join(root, 'features.json'), 'utf8')
        writeFileSync(join(root, 'features.json'), text.replace(/"boot":"[^"]*"/, '"boot":"another"'))
      },
      '1',
    ],
    ['a torn file', () => writeFileSync(join(root, 'features.json'), '{"boot'), '1'],
    ['a file of something else', () => writeFileSync(join(root, 'features.json'), '[]'), '1'],
  ])('begins anew after %s', async (_what, change, version) => {
    await memory()(['overlay'])
    change()
    await memory(version)(['overlay'])
    expect(tried).toHaveLength(2)
  })

  it('believes no file about what it does not keep itself', async () => {
    await memory()(['overlay'])
    const path = join(root, 'features.json')
    const kept = JSON.parse(readFileSync(path, 'utf8')) as { rows: object }
    writeFileSync(path, JSON.stringify({ ...kept, rows: { ...kept.rows, landlock: row('landlock') } }))
    await memory()(['overlay', 'landlock'])
    expect(tried.at(-1)).toEqual(['landlock'])
  })

  it('tries all for who asks for all, and for who pretends to be another host', async () => {
    const one = memory()
    await one(['overlay'])
    await one()
    vi.stubEnv('PUZZLED_TEST_FEATURES', 'overlay:0')
    await one(['overlay'])
    expect(tried).toEqual([['overlay'], undefined, ['overlay']])
  })
})
