import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { begin, DEVELOPER, REVIEWER } from './cli.ts'
import { inProject } from './grounds.ts'

const { here, file, put, text, hold, branches } = inProject()

/** A branch that waits for a person. */
const agent = (name: string, script: string) => hold(script, '--name', name)
const LINES = Array.from({ length: 20 }, (_, n) => `${n + 1}\n`)
/** Rebases, and has the new branch approved by somebody else. */
async function land(name: string, ...choices: string[]): Promise<string> {
  const rebased = await here.puzzlectl('rebase', name, '--json', ...choices)
  const outcome = JSON.parse(rebased.out || '{}')
  expect([rebased.status, rebased.err, outcome.state]).toEqual([120, '', 'held'])
  const approved = await here.asUser(REVIEWER, 'approve', outcome.branch)
  expect([approved.status, approved.err]).toEqual([0, ''])
  return outcome.branch
}

describe('rebase', () => {
  it('does everything again where the base changed elsewhere', async () => {
    for (const name of ['a.txt', 'gone.txt', 'mode.sh', 'other.txt']) put(name, `${name}\n`)
    mkdirSync(file('tree/deep'), { recursive: true })
    writeFileSync(file('tree/deep/x'), 'x')
    for (const name of ['tree', 'tree/deep', 'tree/deep/x']) chownSync(file(name), DEVELOPER, DEVELOPER)
    await agent(
      'work',
      'echo agent >> a.txt; rm gone.txt; chmod 640 mode.sh; mkdir new; echo n > new/n; ln new/n new/m; ' +
        'ln -s n new/l; rm -r tree; mkdir tree; echo fresh > tree/fresh; touch -d 2020-01-01 new/n',
    )
    put('other.txt', 'the editor saved this\n')
    await land('work')
    expect(text('a.txt')).toBe('a.txt\nagent\n')
    expect(text('other.txt')).toBe('the editor saved this\n')
    expect(existsSync(file('gone.txt'))).toBe(false)
    expect(lstatSync(file('mode.sh')).mode & 0o777).toBe(0o640)
    expect([existsSync(file('tree/deep')), text('tree/fresh')]).toEqual([false, 'fresh\n'])
    expect(lstatSync(file('new/n')).ino).toBe(lstatSync(file('new/m')).ino)
    expect(lstatSync(file('new/n')).mtime.getUTCFullYear()).toBeLessThan(2021)
    expect(lstatSync(file('new/n')).uid).toBe(DEVELOPER)
    expect(readlinkSync(file('new/l'))).toBe('n')
    // The old branch is nobody's to remove but the user's.
    expect(await branches()).toMatchObject([{ name: 'work', state: 'held' }, { state: 'committed' }])
  })

  it('tells every collision and makes nothing while one is undecided', async () => {
    put('a.txt', 'one\n')
    put('b.txt', 'one\n')
    await agent('late', 'echo agent > a.txt; echo agent > b.txt; echo agent > c.txt')
    put('a.txt', 'editor\n')
    put('b.txt', 'editor\n')
    const all = await here.puzzlectl('rebase', 'late')
    expect(all.out).toMatch(
      /^2 paths changed on both sides; nothing was made:\na\.txt: .*\nb\.txt: .*\nDecide/,
    )
    expect(all.status).toBe(122)
    const one = await here.puzzlectl('rebase', 'late', '--ours', 'a.txt')
    expect([one.status, one.out]).toEqual([122, expect.stringMatching(/^1 path .*\nb\.txt: /)])
    const both = await here.puzzlectl('rebase', 'late', '--ours', '*', '--theirs', 'b.txt')
    expect([both.status, both.out]).toEqual([122, expect.stringMatching(/^1 path .*\nb\.txt: /)])
    expect(await branches()).toMatchObject([{ name: 'late', state: 'held' }])
    expect([text('a.txt'), text('b.txt'), existsSync(file('c.txt'))]).toEqual(['editor\n', 'editor\n', false])
  })

  it.each([
    [['--ours', 'a.txt'], 'agent\n', true],
    [['--theirs', 'a.txt'], 'editor\n', true],
    [['--drop', 'a.txt'], 'editor\n', true],
    [['--ours', 'a.txt', '--drop', 'new'], 'agent\n', false],
  ])('lands what %j decided', async (choices, content, made) => {
    put('a.txt', 'one\n')
    await agent('late', 'echo agent > a.txt; mkdir new; echo agent > new/c.txt')
    put('a.txt', 'editor\n')
    await land('late', ...choices)
    expect([text('a.txt'), existsSync(file('new/c.txt'))]).toEqual([content, made])
  })

  it('keeps a directory in which somebody else made a file', async () => {
    mkdirSync(file('d'))
    chownSync(file('d'), DEVELOPER, DEVELOPER)
    put('d/old', 'old\n')
    await agent('removes', 'rm -r d')
    put('d/new', 'the editor made this\n')
    expect((await here.puzzlectl('rebase', 'removes')).status).toBe(122)
    await land('removes', '--theirs', 'd/new')
    expect([existsSync(file('d/old')), text('d/new')]).toEqual([false, 'the editor made this\n'])
  })

  it('after a part has landed, sees what others changed since the fork', async () => {
    for (const name of ['a.txt', 'b.txt']) put(name, 'one\n')
    await agent('parts', 'echo agent > a.txt; echo agent > b.txt')
    put('b.txt', 'editor\n')
    expect((await here.puzzlectl('review', '--judge', 'parts')).status).toBe(120)
    expect((await here.asUser(REVIEWER, 'approve', 'parts', '--only', 'a.txt')).status).toBe(0)
    const rest = await here.puzzlectl('rebase', 'parts')
    expect([rest.status, rest.out]).toEqual([122, expect.stringMatching(/^1 path .*\nb\.txt: /)])
    expect(text('b.txt')).toBe('editor\n')
  })

  it('merges the lines of two branches, tells it, and lands them after a person has looked', async () => {
    put('a.txt', LINES.join(''))
    await agent('second', "sed -i 's/^3$/three/' a.txt; echo new > b.txt")
    await agent('first', "sed -i 's/^17$/seventeen/' a.txt")
    expect((await here.asUser(REVIEWER, 'approve', 'first')).status).toBe(0)
    const refused = await here.asUser(REVIEWER, 'approve', 'second')
    expect(refused.status).toBe(122)
    const rebased = await here.puzzlectl('rebase', 'second')
    expect([rebased.status, rebased.out + rebased.err]).toEqual([
      120,
      expect.stringMatching(
        /a\.txt: both sides changed it and their lines were merged; commit c\w+ had kept/,
      ),
    ])
    const made = (await branches()).at(-1)
    expect((await here.puzzlectl('diff', made?.id ?? '')).out).toMatch(/^-3\n\+three$/m)
    expect((await here.asUser(REVIEWER, 'approve', made?.id ?? '')).status).toBe(0)
    const both = LINES.join('').replace('\n3\n', '\nthree\n').replace('\n17\n', '\nseventeen\n')
    expect([text('a.txt'), text('b.txt')]).toEqual([both, 'new\n'])
    expect(lstatSync(file('a.txt')).uid).toBe(DEVELOPER)
  })

  it.each([
    [['--ours', 'a.txt'], (agent: string) => agent],
    [['--theirs', 'a.txt'], (_: string, base: string) => base],
    [['--drop', 'a.txt'], (_: string, base: string) => base],
  ])('does not merge what %j decided', async (choices, expected) => {
    put('a.txt', LINES.join(''))
    await agent('second', "sed -i 's/^3$/three/' a.txt; echo new > b.txt")
    await agent('first', "sed -i 's/^17$/seventeen/' a.txt")
    await here.asUser(REVIEWER, 'approve', 'first')
    await land('second', ...choices)
    const [mine, base] = [['3', 'three'] as const, ['17', 'seventeen'] as const].map(([from, to]) =>
      LINES.join('').replace(`\n${from}\n`, `\n${to}\n`),
    )
    expect(text('a.txt')).toBe(expected(mine ?? '', base ?? ''))
  })

  it('says why it cannot merge: the same lines, or nothing to merge with', async () => {
    put('a.txt', LINES.join(''))
    put('b.txt', LINES.join(''))
    await agent('second', "sed -i 's/^3$/three/' a.txt b.txt")
    await agent('first', "sed -i 's/^4$/four/' a.txt")
    expect((await here.asUser(REVIEWER, 'approve', 'first')).status).toBe(0)
    put('b.txt', `0\n${LINES.join('')}`)
    const open = await here.puzzlectl('rebase', 'second')
    expect(open.status).toBe(122)
    expect(open.out).toMatch(
      /^a\.txt: .*both sides changed it at line 3 of the version that they have in common$/m,
    )
    expect(open.out).toMatch(/^b\.txt: .*no version from the time of the fork is kept to merge with$/m)
  })

  it.each(['rebase.reapplied-one', 'rebase.reapplied'])(
    'killed at %s leaves the old branch as it was and nothing of the new one',
    async (point) => {
      put('a.txt', 'one\n')
      put('other.txt', 'one\n')
      await agent('work', 'echo agent > a.txt; mkdir d; echo b > d/b; echo c > c')
      put('other.txt', 'two\n')
      const killed = begin(here.project, here.state, DEVELOPER, ['rebase', 'work'], `${point}=kill`)
      expect((await killed.ended).status).toBeNull()
      expect(await branches()).toMatchObject([{ name: 'work', state: 'held' }])
      expect(readdirSync(join(here.state, 'branches'))).toHaveLength(1)
      await land('work')
      expect([text('a.txt'), text('d/b'), text('c'), text('other.txt')]).toEqual([
        'agent\n',
        'b\n',
        'c\n',
        'two\n',
      ])
    },
  )

  it('is a conflict for a change that comes after it', async () => {
    put('a.txt', 'one\n')
    await agent('late', 'echo agent > a.txt')
    put('a.txt', 'editor\n')
    const rebased = await here.puzzlectl('rebase', 'late', '--json', '--ours', 'a.txt')
    put('a.txt', 'editor again\n')
    const { branch } = JSON.parse(rebased.out)
    expect((await here.puzzlectl('review', '--judge', branch)).status).toBe(120)
    expect((await here.asUser(REVIEWER, 'approve', branch)).status).toBe(122)
    expect(text('a.txt')).toBe('editor again\n')
  })
})
