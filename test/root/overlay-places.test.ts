import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { type OpenedEngine, openEngine } from '../../daemon/embedded.ts'
import { defaultConfig } from '../../daemon/lib/config.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { warmUp } from './branch.fixture.ts'

const check = needs(root)
const USER = 1000
const REQUESTER = { uid: USER, gid: USER, groups: [USER], name: 'tester' }

const profileOf = (shared: string): string => `format: puzzled/profile/v1
name: shared
description: Shares one more directory with the agent.
mounts:
  - { path: [/usr, /bin, /sbin, /lib], mode: ro, why: Programs of the system. }
  - { path: [/lib64, /etc], mode: ro, optional: true, why: Programs of the system. }
  - { path: ${shared}, mode: rw-overlay, why: What agents of this team share. }
  - { path: ${shared}-absent, mode: rw-overlay, optional: true, why: Not on every machine. }
exec: { allow: { any: true, why: Whatever the test runs. } }
seccomp: { program: standard, why: Whatever the test runs. }
`

describe('a place that a profile makes writable', () => {
  let dir = ''
  let opened: OpenedEngine
  const at = (...names: string[]): string => join(dir, ...names)

  beforeAll(async () => await warmUp(new Launcher()))
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'places-'))
    chmodSync(dir, 0o755)
    for (const name of ['project', 'shared']) {
      mkdirSync(at(name))
      chownSync(at(name), USER, USER)
    }
    writeFileSync(at('profile.yaml'), profileOf(at('shared')))
    opened = await openEngine({ ...defaultConfig(), state_dir: at('state') }, REQUESTER, false)
  })
  afterEach(async () => {
    await opened.release()
    rmSync(dir, { recursive: true, force: true })
  })

  check('is a copy until the commit, like the base beside it, and then both have changed', async () => {
    const session = await opened.engine.run({
      ...{ bases: [at('project')], profile: at('profile.yaml'), name: null, afterwards: 'hold' as const },
      command: ['sh', '-c', `echo one > here; echo two > ${at('shared')}/there`],
      ...{ cwd: at('project'), requester: REQUESTER, budgets: {}, environment: { PATH: '/usr/bin:/bin' } },
      ...{ setEnvironment: {}, stdio: { kind: 'pipes' as const } },
    })
    session.output?.resume()
    session.errors?.resume()
    const held = await opened.engine.finish(session.id)
    expect(held.state).toBe('held')
    expect((await opened.engine.show(session.id)).bases.map(({ path }) => path)).toEqual([
      at('project'),
      at('shared'),
    ])
    expect([existsSync(at('project', 'here')), existsSync(at('shared', 'there'))]).toEqual([false, false])
    const { state, verdict, reason } = await opened.engine.commit(session.id)
    expect({ state, verdict: verdict?.kind, reason }).toMatchObject({ state: 'committed', verdict: 'allow' })
    expect(readFileSync(at('project', 'here'), 'utf8')).toBe('one\n')
    expect(readFileSync(at('shared', 'there'), 'utf8')).toBe('two\n')
  })
})
