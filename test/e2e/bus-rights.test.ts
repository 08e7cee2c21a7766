import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BRANCH, branchPath, MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import { onBus } from './grounds.ts'
import { type Identity, WHO } from './private-bus.ts'
import { type Answer, pythonCall, pythonDbus } from './python-client.ts'

const { here, it: check } = onBus('all', pythonDbus)
const { developer, colleague, reviewer } = WHO

const manager = (who: Identity, member: string, ...args: unknown[]): Promise<Answer> =>
  pythonCall(here, who, { path: MANAGER_PATH, face: MANAGER.name }, member, ...args)
const branch = (who: Identity, id: string, member: string, ...args: unknown[]): Promise<Answer> =>
  pythonCall(here, who, { path: branchPath(id), face: BRANCH.name }, member, ...args)
/** Beside the project: root's own, which nobody else may enter. */
const hidden = (): string => join(here.project, '..', 'hidden')
const request = (base: string) => ({ bases: [base], cwd: base, command: ['true'] })
const held = async (script: string, ...options: string[]): Promise<string> => {
  const command = ['run', '--json', '--then', 'hold', ...options, '--', 'sh', '-c', script]
  const { out, err } = await here.puzzlectl(developer, ...command)
  expect(err).toBe('')
  return (JSON.parse(out) as { branch: string }).branch
}

/** Must-sentence 7: the daemon is root, and whoever calls it must not see or do anything through root's eyes and hands. */
describe('a caller gains no right', () => {
  check('to a directory that it cannot reach, nor hears whether it exists', async () => {
    mkdirSync(join(hidden(), 'open'), { recursive: true })
    chmodSync(hidden(), 0o700)
    const inside = await manager(developer, 'CreateBranch', request(join(hidden(), 'open')))
    const missing = await manager(developer, 'CreateBranch', request(join(hidden(), 'missing')))
    expect([inside.error, missing.error]).toEqual(['BaseInvalid', 'BaseInvalid'])
    const blurred = (text = ''): string => text.replaceAll(/open|missing/g, '*')
    expect(blurred(inside.message)).toBe(blurred(missing.message))
    // The positive control: root may, and the developer may fork what is its own.
    const mine = await manager(WHO.root, 'CreateBranch', request(join(hidden(), 'open')))
    expect(mine.error).toBeUndefined()
    expect((await manager(developer, 'CreateBranch', request(here.project))).error).toBeUndefined()
  })

  check('to what root keeps secret in a base, by any question about content', async () => {
    const { value } = await manager(developer, 'CreateBranch', request('/etc'))
    const id = String(value).split('/').at(-1) ?? ''
    const path = [...Buffer.from('shadow')]
    expect((await branch(developer, id, 'Content', 0, path, 4096)).error).toBe('Usage')
    expect((await branch(developer, id, 'Content', 0, [...Buffer.from('passwd')], 4096)).error).toBe('Usage')
    await branch(developer, id, 'Discard')
  })

  check('to a file of root that it deletes from its own directory', async () => {
    writeFileSync(join(here.project, 'secret'), 'of root', { mode: 0o600 })
    const id = await held('rm -f secret; echo a > a')
    const content = async (name: string): Promise<unknown> =>
      (await branch(developer, id, 'Content', 0, [...Buffer.from(name)], 4096)).value
    expect(await content('secret')).toMatchObject({ before: { bytes: [], size: 7, withheld: true } })
    expect(await content('a')).toMatchObject({ after: { bytes: [...Buffer.from('a\n')] } })
    expect((await here.puzzlectl(developer, 'diff', id)).out).toContain('may not read it')
    expect((await here.puzzlectl(developer, 'discard', id)).status).toBe(0)
  })

  check('by a profile of its own, which could make root run a command', async () => {
    const proof = join(hidden(), 'proof')
    const profile = join(here.project, 'mine.yaml')
    writeFileSync(profile, evil(proof), { mode: 0o644 })
    const run = (who: Identity) => manager(who, 'Run', { ...request(here.project), profile })
    expect(await run(developer)).toMatchObject({ error: 'AccessDenied' })
    expect(readdirSync(hidden())).not.toContain('proof')
    // The positive control: for root it is used. The command printed no secret, so nothing starts.
    expect((await run(WHO.root)).message).toContain('placeholder-1')
    expect(readdirSync(hidden())).toContain('proof')
  })

  check('over a commit of somebody else, nor by a commit that it has invented', async () => {
    const id = await held('echo a > landed')
    const { out } = await here.puzzlectl(reviewer, 'approve', id)
    const commit = /committed as (c\w+)/.exec(out)?.[1] ?? ''
    expect(await manager(colleague, 'Revert', commit)).toMatchObject({ error: 'BranchUnknown' })
    for (const invented of [`../${commit}`, '../../../tmp/evil', 'x'.repeat(1 << 16)])
      expect(await manager(developer, 'Revert', invented)).toMatchObject({ error: 'BranchUnknown' })
    // By the beginning of an id, others find nothing either.
    expect(await manager(colleague, 'Revert', commit.slice(0, 9))).toMatchObject({ error: 'BranchUnknown' })
    expect((await manager(developer, 'Revert', commit)).value).toMatchObject({ state: 'committed' })
  })

  check('to names and ids: one that others use is free, and what is ambiguous is one’s own', async () => {
    const id = await held('echo a > a', '--name', 'same')
    const path = join(here.project, '..', 'second')
    mkdirSync(path)
    const { error } = await manager(colleague, 'CreateBranch', { ...request(path), name: 'same' })
    expect(error).toBeUndefined()
    expect((await manager(developer, 'GetBranch', 'same')).value).toBe(branchPath(id))
    expect((await manager(colleague, 'GetBranch', id)).error).toBe('BranchUnknown')
    expect((await manager(colleague, 'GetBranch', id.slice(0, 9))).error).toBe('BranchUnknown')
    expect((await manager(reviewer, 'GetBranch', 'same')).error).toBe('BranchAmbiguous')
  })
})

/** The installed one, with a credential whose source is a command. */
const evil = (proof: string): string => {
  const file = new URL('../../policies/profiles/standard.yaml', import.meta.url)
  const credential = `  credentials:
    - placeholder: placeholder-1
      source: { kind: command, argv: [/usr/bin/touch, ${proof}] }
      hosts: [registry.npmjs.org]
      header: authorization
      why: An attack.
`
  return readFileSync(file, 'utf8').replace(/^network:\n/m, `network:\n${credential}`)
}
