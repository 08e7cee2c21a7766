import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { as, installService, puzzlectl, run, type Said, type Service } from './service.ts'

/** polkit's own daemon on the system bus, and ours as a service: nobody stands in for anybody. */
describe('polkit and the system bus', () => {
  const file = '/etc/polkit-1/rules.d/10-local.rules'
  let service: Service
  beforeAll(() => {
    service = installService()
    run('systemctl', 'restart', 'polkit.service')
  })
  afterAll(() => {
    rmSync(file, { force: true })
    service.remove()
  })

  const agent = (user: string, script: string, ...options: string[]): Said =>
    puzzlectl(user, service.project, 'run', ...options, '--', 'sh', '-c', script)
  /** Rules are read again when their folder changes; polkit says when it has. */
  const local = async (text: string | undefined, user: string, answer: number): Promise<void> => {
    if (text === undefined) rmSync(file)
    else writeFileSync(file, text)
    await expect.poll(() => check(user, 'manage').status, { timeout: 60_000, interval: 500 }).toBe(answer)
  }
  const rule = (when: string, answer: string): string =>
    `polkit.addRule(function (action, subject) { if (${when}) return polkit.Result.${answer}; });\n`
  const check = (user: string, action: string): Said =>
    as(user, '/', 'sh', '-c', `pkcheck --action-id org.puzzled1.${action} --process $$`)

  it('shows the actions with what a person is told', () => {
    const shown = run('pkaction', '--verbose')
    for (const [action, rights] of [
      ['manage', 'auth_admin_keep'],
      ['approve', 'auth_admin'],
      ['administer', 'auth_admin'],
    ])
      expect(shown).toMatch(
        new RegExp(`org\\.puzzled1\\.${action}:\\n(  .*\\n)*  implicit any: +${rights}\\n`),
      )
    expect(shown).toContain('Authentication is required to run an agent in a branch')
  })

  it('asks a stranger for a proof, and without one nothing happens', () => {
    // Two: authentication would be needed, and nobody is there to ask.
    expect(check('mallory', 'manage').status).toBe(2)
    const refused = agent('mallory', 'echo stolen > stolen.txt')
    expect([refused.status, refused.err]).toEqual([77, expect.stringMatching(/may not|prove who they are/)])
    expect(readdirSync(service.project)).toEqual([])
    expect(JSON.parse(puzzlectl('mallory', '/', 'ls', '--json').out)).toEqual([])
  })

  it('follows the rule of an administrator, and its end', async () => {
    const allow = rule('action.id == "org.puzzled1.manage" && subject.user == "mallory"', 'YES')
    await local(allow, 'mallory', 0)
    // Polkit lets mallory run agents; what they write is mallory's, who may not write here.
    expect(agent('mallory', 'true').status).toBe(0)
    await local(undefined, 'mallory', 2)
    expect(agent('mallory', 'true').status).toBe(77)
    const deny = rule('subject.user == "alice"', 'NO')
    await local(deny, 'alice', 1)
    expect(agent('alice', 'true').status).toBe(77)
    await local(undefined, 'alice', 0)
  })

  it('lets another person approve, by the action of reviewers', () => {
    const held = agent('alice', 'echo reviewed > file.txt', '--then', 'hold', '--name', 'work')
    expect([held.status, existsSync(join(service.project, 'file.txt'))]).toEqual([0, false])
    expect([check('alice', 'approve').status, check('bob', 'approve').status]).toEqual([2, 0])
    const own = puzzlectl('alice', '/', 'approve', 'work')
    expect(own.status).toBe(77)
    const approved = puzzlectl('bob', '/', 'approve', 'work', '-m', 'fine')
    expect([approved.status, approved.err]).toEqual([0, ''])
    expect(approved.out).toContain('committed as')
    expect(readFileSync(join(service.project, 'file.txt'), 'utf8')).toBe('reviewed\n')
    expect(run('stat', '-c', '%U', join(service.project, 'file.txt')).trim()).toBe('alice')
  })

  it('answers a stranger who calls the bus by hand', () => {
    const call = [
      'busctl',
      '--system',
      'call',
      'org.puzzled1',
      '/org/puzzled1',
      'org.puzzled1.Manager',
      'Reload',
    ]
    expect(as('mallory', '/', ...call)).toMatchObject({
      status: 1,
      err: expect.stringMatching(/prove who they are/),
    })
    expect(as('root', '/', ...call).status).toBe(0)
  })
})
