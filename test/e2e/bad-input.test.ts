import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makePlace, missingFor } from '../root/filesystems.ts'
import { needs, root } from '../tier/needs.ts'
import { patience } from '../tier/patience.ts'
import { begin, DEVELOPER, type Ended, REVIEWER } from './cli.ts'
import { inProject } from './grounds.ts'

const { here, file, put, hold, branches } = inProject()

const tree = (): string =>
  execFileSync('sh', ['-c', 'ls -lRn --time-style=full-iso . ; cat $(find . -type f)'], {
    cwd: here.project,
    encoding: 'utf8',
  })
const ids = async (): Promise<string[]> => (await branches()).map(({ id }) => id)
const said = ({ out, err }: Ended): string => out + err

describe('a base', () => {
  it.each([
    ['that does not exist', (): string => file('missing'), /missing" does not exist/],
    ['that is a file', (): string => file('a.txt'), /a\.txt" is not a directory/],
    ['that is the root', (): string => '/', /is the root of the system/],
    ['that is the store', (): string => here.state, /is the store itself/],
    ['that contains the store', (): string => join(here.state, '..'), /contains the store/],
    [
      'inside of the store',
      (): string => join(here.state, 'branches'),
      /lies inside the store|cannot be resolved \(EACCES\)/,
    ],
    ['on a filesystem that holds no files', (): string => '/proc', /on proc, which cannot be forked/],
  ] as const)('%s is refused by name, and nothing is made', async (_, base, message) => {
    put('a.txt', 'one\n')
    await here.puzzlectl('ls')
    const before = tree()
    const answer = await here.puzzlectl('run', '--base', base(), '--', 'touch', 'never')
    expect([answer.status, said(answer)]).toEqual([66, expect.stringMatching(message)])
    expect(tree()).toBe(before)
    expect(await ids()).toEqual([])
    expect(readdirSync(join(here.state, 'branches'))).toEqual([])
  })

  it('on which something else is mounted now is left alone; the branch stays', async () => {
    put('a.txt', 'one\n')
    await hold('echo agent > a.txt')
    const [id = ''] = await ids()
    execFileSync('mount', ['-t', 'tmpfs', 'none', here.project])
    try {
      const refused = await here.asUser(REVIEWER, 'approve', id)
      expect(said(refused)).toMatch(/is on another filesystem than (at fork time|when the branch was forked)/)
      expect(refused.status).not.toBe(0)
      expect(readdirSync(here.project)).toEqual([])
    } finally {
      execFileSync('umount', [here.project])
    }
    expect((await here.puzzlectl('review', '--judge', id)).status).toBe(120)
    expect((await here.asUser(REVIEWER, 'approve', id)).status).toBe(0)
    expect(readFileSync(file('a.txt'), 'utf8')).toBe('agent\n')
  })

  it('that the caller cannot write to is not written to by a commit either', async () => {
    mkdirSync(file('closed'))
    writeFileSync(file('closed/roots'), 'root\n')
    await hold('rm -rf closed; mkdir closed; echo agent > closed/new; true')
    const [id = ''] = await ids()
    const before = tree()
    if (id !== undefined && id !== '') {
      const refused = await here.asUser(REVIEWER, 'approve', id)
      expect([refused.status, said(refused)]).toEqual([
        expect.any(Number),
        expect.stringMatching(/Cannot commit "closed/),
      ])
      expect(refused.status).not.toBe(0)
    }
    expect(tree()).toBe(before)
  })
})

describe('a full disk', () => {
  const full = needs(root, missingFor('ext4'))

  full(
    'of the base refuses the commit: the base is the old one, nothing is left over, the branch stays',
    async () => {
      const place = makePlace('ext4')
      const base = join(place.path, 'base')
      mkdirSync(base)
      writeFileSync(join(base, 'keep'), 'kept\n')
      // The developer must be able to reach it.
      for (const above of [place.path, join(place.path, '..')]) chmodSync(above, 0o755)
      chownSync(base, DEVELOPER, DEVELOPER)
      try {
        const script = 'echo agent > small; head -c 40000000 /dev/urandom > large; rm keep'
        await begin(base, here.state, DEVELOPER, ['run', '--then', 'hold', '--', 'sh', '-c', script]).ended
        const [id = ''] = await ids()
        execFileSync(
          'sh',
          ['-c', 'dd if=/dev/zero of=filler bs=1M 2>/dev/null || rm -f lost; truncate -s -16M filler; sync'],
          {
            cwd: place.path,
          },
        )
        const refused = await here.asUser(REVIEWER, 'approve', id)
        expect([refused.status === 0, said(refused)]).toEqual([false, expect.stringMatching(/ENOSPC/)])
        expect(readdirSync(base)).toEqual(['keep'])
        expect(readdirSync(join(here.state, 'journal'))).toEqual([])
        expect(readdirSync(join(place.path, '.puzzled'))).toEqual([])
        rmSync(join(place.path, 'filler'))
        expect((await here.puzzlectl('review', '--judge', id)).status).toBe(120)
        expect((await here.asUser(REVIEWER, 'approve', id)).status).toBe(0)
        expect(readdirSync(base).sort()).toEqual(['large', 'small'])
      } finally {
        place.remove()
      }
    },
  )

  full('of the store ends the work of the agent, not what is on record', async () => {
    const place = makePlace('ext4')
    const state = join(place.path, 'state')
    const call = (...args: string[]): Promise<Ended> => begin(here.project, state, DEVELOPER, args).ended
    try {
      put('a.txt', 'one\n')
      const run = await call(
        'run',
        '--then',
        'hold',
        '--',
        'sh',
        '-c',
        'dd if=/dev/zero of=fill bs=1M; echo agent > a.txt',
      )
      // Whichever comes first: the agent is ended because there is hardly any room, or write(2) fails.
      expect(said(run)).toMatch(
        /the agent did not end well: (Its use cannot be read|The filesystem of the store)|No space left on device/,
      )
      expect(said(run)).toMatch(/held as asked/)
      const list = JSON.parse((await call('ls', '--json')).out) as { id: string; state: string }[]
      expect(list).toHaveLength(1)
      expect(readFileSync(file('a.txt'), 'utf8')).toBe('one\n')
      expect((await call('discard', list[0]?.id ?? '')).status).toBe(0)
      expect((await call('run', '--', 'true')).status).toBe(0)
    } finally {
      place.remove()
    }
  })
})

describe('a store', () => {
  it('of a newer version is not touched', async () => {
    await here.puzzlectl('ls')
    writeFileSync(join(here.state, 'version'), '2\n')
    const answer = await here.puzzlectl('run', '--', 'true')
    expect([answer.status, said(answer)]).toEqual([
      78,
      expect.stringMatching(/has version 2, this puzzled knows 1/),
    ])
    expect(readFileSync(join(here.state, 'version'), 'utf8')).toBe('2\n')
    expect(readdirSync(join(here.state, 'branches'))).toEqual([])
    writeFileSync(join(here.state, 'version'), 'x\n')
    expect(said(await here.puzzlectl('ls'))).toMatch(/is damaged: it does not hold a version/)
  })

  it.each([
    ...['branches', 'journal', 'audit', 'staging', 'policy', 'trash'].map((name) => ({ name, folder: true })),
    ...['version', 'lock'].map((name) => ({ name, folder: false })),
  ])('whose part "$name" is something else is refused with its path', async ({ name, folder }) => {
    await here.puzzlectl('ls')
    mkdirSync(here.state, { recursive: true })
    const part = join(here.state, name)
    rmSync(part, { recursive: true, force: true })
    if (folder) writeFileSync(part, 'something\n')
    else mkdirSync(part)
    const answer = await here.puzzlectl('run', '--', 'true')
    expect([answer.status, said(answer)]).toEqual([
      74,
      expect.stringContaining(`Cannot use "${part}" of the store: it is `),
    ])
    expect(said(answer)).toContain('hint: ')
    if (folder) expect(readFileSync(part, 'utf8')).toBe('something\n')
  })

  it('that another process uses is not entered, and the other one goes on', async () => {
    const first = begin(here.project, here.state, DEVELOPER, [
      'run',
      '--then',
      'hold',
      '--',
      'sh',
      '-c',
      `sleep ${25 * patience}; echo a > a`,
    ])
    await expect.poll(async () => (await here.puzzlectl('ls')).out).toContain('running')
    // Looking is allowed; whatever changes the store is not.
    expect((await here.puzzlectl('ls')).status).toBe(0)
    const second = await here.puzzlectl('gc')
    expect([second.status, said(second)]).toEqual([75, expect.stringMatching(/is in use by process \d+/)])
    await first.ended
    expect(await ids()).toHaveLength(1)
  })

  it('finds a branch by what names one only', async () => {
    await hold('echo a > a', '--name', 'one')
    await hold('echo b > b', '--name', 'two')
    const [first = '', second = ''] = await ids()
    for (const unknown of ['zzzz', '', '../..', first.slice(0, 6).toUpperCase()]) {
      const answer = await here.puzzlectl('show', unknown)
      expect([answer.status, said(answer)]).toEqual([
        expect.any(Number),
        expect.stringMatching(/There is no branch|usage|missing/i),
      ])
      expect(answer.status).not.toBe(0)
    }
    let common = 0
    while (first[common] === second[common]) common++
    if (common > 0) expect(said(await here.puzzlectl('show', first.slice(0, common)))).toMatch(/could be/)
    expect((await here.puzzlectl('show', first.slice(0, common + 1))).status).toBe(0)
  })
})

describe('a journal', () => {
  /** A commit that the power interrupted once INTENT was durable. */
  async function interrupted(): Promise<{ id: string; journal: string }> {
    put('a.txt', 'one\n')
    await hold('echo agent > a.txt')
    const [id = ''] = await ids()
    const killed = begin(here.project, here.state, REVIEWER, ['approve', id], 'commit.after-intent=kill')
    expect((await killed.ended).status).toBeNull()
    const [journal = ''] = readdirSync(join(here.state, 'journal')).filter((name) => name.endsWith('.log'))
    return { id, journal: join(here.state, 'journal', journal) }
  }
  const stateOf = async (id: string): Promise<string> =>
    (JSON.parse((await here.puzzlectl('show', id, '--json')).out) as { state: string }).state

  it('that is torn behind INTENT is followed to its end', async () => {
    const { id, journal } = await interrupted()
    const whole = readFileSync(journal)
    whole.write('0123456789abcdef {"kind":"do', whole.indexOf(0))
    writeFileSync(journal, whole)
    expect(await stateOf(id)).toBe('committed')
    expect(readFileSync(file('a.txt'), 'utf8')).toBe('agent\n')
  })

  it('that is damaged before INTENT is kept and shown, and nothing is done', async () => {
    const { id, journal } = await interrupted()
    const damaged = readFileSync(journal)
    damaged[20] = (damaged[20] ?? 0) ^ 1
    writeFileSync(journal, damaged)
    expect(await stateOf(id)).toBe('commit-stuck')
    expect(said(await here.puzzlectl('show', id))).toMatch(/the journal of commit c\w+ is damaged/)
    expect(readFileSync(file('a.txt'), 'utf8')).toBe('one\n')
    expect(readFileSync(journal).equals(damaged)).toBe(true)
  })

  it('of a newer version is kept and shown', async () => {
    const { id, journal } = await interrupted()
    const [line = ''] = readFileSync(journal, 'utf8').split('\n')
    const newer = line.slice(17).replace('"version":1', '"version":9')
    const { createHash } = await import('node:crypto')
    const check = createHash('sha256').update('0'.repeat(16)).update(newer).digest('hex').slice(0, 16)
    writeFileSync(journal, `${check} ${newer}\n`)
    expect(await stateOf(id)).toBe('commit-stuck')
    expect(readFileSync(file('a.txt'), 'utf8')).toBe('one\n')
  })
})
