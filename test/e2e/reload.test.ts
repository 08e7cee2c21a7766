import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import { root } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { CONFIG, ownEtc } from './own-etc.ts'
import { eventually, WHO } from './private-bus.ts'
import { pythonCall, pythonDbus } from './python-client.ts'

const shipped = new URL('../../policies/dist/commit.wasm', import.meta.url)

let putBack: (() => void) | undefined
beforeEach(() => {
  if (root === undefined) putBack = ownEtc()
})
afterEach(() => putBack?.())
// After the /etc above, and gone before it.
const { here, it: check } = onBus('each', pythonDbus)

const reload = async (): Promise<string> => {
  const { error } = await pythonCall(here, WHO.root, { path: MANAGER_PATH, face: MANAGER.name }, 'Reload')
  return error ?? 'reloaded'
}
/** The policies that decided about a run. */
const policies = async (): Promise<string[]> => {
  const { out } = await here.puzzlectl(WHO.developer, 'run', '--json', '--', 'sh', '-c', 'date +%N > a.txt')
  const { verdict } = JSON.parse(out) as { verdict: { policies: { name: string }[] } }
  return verdict.policies.map(({ name }) => name)
}
const put = (name: string, text: string): void => writeFileSync(join(CONFIG, name), text)
const checked = (config: string) =>
  here.exec(WHO.root, [process.execPath, PUZZLED, '--config', config, '--check-config'])

describe('a reload', () => {
  check('is all or nothing: of a good policy and bad actions neither is in force', async () => {
    expect(await policies()).toEqual(['commit'])
    copyFileSync(shipped, join(CONFIG, 'policies', 'second.wasm'))
    put('actions.yaml', 'format: nonsense\n')
    expect(await reload()).toBe('PolicyInvalid')
    expect(await policies()).toEqual(['commit'])
    rmSync(join(CONFIG, 'actions.yaml'))
    expect(await reload()).toBe('reloaded')
    expect(await policies()).toEqual(['commit', 'second'])
  })

  check('with a broken policy, profile or configuration changes nothing and says what is wrong', async () => {
    put('policies/bad.wasm', 'not a module')
    expect(await reload()).toBe('PolicyInvalid')
    here.daemon.kill('SIGHUP')
    await eventually(async () => {
      if (!here.said().includes('bad.wasm')) throw new Error('Not yet')
    })
    expect((await checked(here.config)).err).toContain('bad.wasm')
    rmSync(join(CONFIG, 'policies/bad.wasm'))
    put('profiles/broken.yaml', 'format: puzzled/profile/v1\nname: other\n')
    expect(await reload()).toBe('ProfileInvalid')
    expect(await checked(here.config)).toMatchObject({
      status: 78,
      err: expect.stringContaining('broken.yaml'),
    })
    rmSync(join(CONFIG, 'profiles/broken.yaml'))
    const good = readFileSync(here.config, 'utf8')
    writeFileSync(here.config, `${good}unknown_key: 1\n`)
    expect(await reload()).toBe('ConfigInvalid')
    expect((await checked(here.config)).err).toContain('unknown_key')
    writeFileSync(here.config, good.replace('/state\n', '/elsewhere\n'))
    expect(await reload()).toBe('ConfigInvalid')
    expect(await policies()).toEqual(['commit'])
    expect((await checked(here.config)).status).toBe(0)
  })

  check('takes what can change from the configuration', async () => {
    const good = readFileSync(here.config, 'utf8')
    const refused = await here.puzzlectl(WHO.reviewer, 'run', '--', 'true')
    expect(refused.status).toBe(77)
    writeFileSync(here.config, good.replace('users: games', 'users: news'))
    expect((await here.puzzlectl(WHO.reviewer, 'run', '--', 'true')).status).toBe(77)
    expect(await reload()).toBe('reloaded')
    expect((await here.puzzlectl(WHO.developer, 'run', '--', 'true')).status).toBe(77)
    expect((await here.puzzlectl(WHO.reviewer, 'run', '--', 'true')).err).not.toContain('may not')
  })
})

const PUZZLED = new URL('../../dist/puzzled.js', import.meta.url).pathname
