import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect } from 'vitest'
import { openEngine } from '../../daemon/embedded.ts'
import { nativeFile } from '../../daemon/kernel/clone.ts'
import { defaultConfig } from '../../daemon/lib/config.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { runChecks } from '../../daemon/prove/checks.ts'
import { makeOutside } from '../../daemon/prove/outside.ts'
import { Scene } from '../../daemon/prove/scene.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { warmUp } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'

const check = needs(root, program('bash'))
const STANDARD = new URL('../../policies/profiles/standard.yaml', import.meta.url)
const USER = { uid: 64_321, gid: 64_321 }

beforeAll(() => (root === undefined ? warmUp(new Launcher()) : undefined))

/** The engine lives as long as the test: what it opens must be closed when the test ends. */
async function withScene(work: (sceneWith: (profile: string) => Scene) => Promise<void>): Promise<void> {
  const undo = new UndoStack()
  try {
    const room = mkdtempSync(join(tmpdir(), 'prove-'))
    undo.push('remove the room', () => rmSync(room, { recursive: true }))
    chmodSync(room, 0o755)
    const outside = await makeOutside(join(room, 'outside'), nativeFile('attack'), USER, undo)
    const config = { ...defaultConfig(), state_dir: join(room, 'state') }
    const requester = { uid: 0, gid: 0, groups: [0], name: 'root' }
    const { engine, release } = await openEngine(config, requester, false)
    undo.push('close the engine', release)
    const shadow = join(room, 'shadow.yaml')
    const written = readFileSync(STANDARD, 'utf8')
    writeFileSync(
      shadow,
      written.replace('enforce: enforce', 'enforce: shadow').replace('name: standard', 'name: shadow'),
    )
    await work(
      (name) => new Scene({ engine, outside, room, user: USER, profile: name === 'shadow' ? shadow : name }),
    )
  } finally {
    await undo.unwind()
  }
}

const results = async (scene: Scene): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await runChecks(scene)).map(({ check: name, outcome, detail }) => [
      name,
      outcome === 'stopped' ? outcome : `${outcome}: ${detail}`,
    ]),
  )

async function bothWays(): Promise<Record<string, string>[]> {
  const found: Record<string, string>[] = []
  await withScene(async (sceneWith) => {
    for (const profile of ['standard', 'shadow']) found.push(await results(sceneWith(profile)))
  })
  return found
}

describe('the checks of a proof', () => {
  check('are all stopped, and a gate that only watches lets exactly its own rows through', async () => {
    const [enforced = {}, watched = {}] = await bothWays()
    // This room may have neither bus nor store.
    const { control, ...others } = enforced
    expect(control).toMatch(/^stopped$|^not-verified/)
    expect(
      Object.values(others).filter((outcome) => outcome !== 'stopped'),
      JSON.stringify(enforced),
    ).toEqual([])
    const changed = Object.keys(enforced).filter((name) => enforced[name] !== watched[name])
    expect(changed, JSON.stringify(watched)).toEqual(['hook', 'secret', 'symlink', 'instructions'])
    for (const name of changed)
      expect([name, watched[name]]).toEqual([name, 'escaped: the branch is committed'])
  })
})
