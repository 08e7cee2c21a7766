import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandWords, quotedWord } from './remote-words.ts'

const program = fileURLToPath(new URL('../dist/puzzlectl.js', import.meta.url))

/** Like ssh: what follows the host is joined by blanks and given to a shell. It tells its own arguments on descriptor 2. */
const SSH = `#!/bin/sh
printf 'ssh %s|' "$@" >&2
while [ "$1" != -- ]; do shift; done
shift 2
exec sh -c "$*"
`
const PUZZLECTL = `#!/usr/bin/env node
process.stdin.setEncoding('utf8')
let input = ''
process.stdin.on('data', (text) => { input += text })
process.stdin.on('end', () => {
  console.log(JSON.stringify({ args: process.argv.slice(2), input }))
  process.exitCode = 42
})
`

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'puzzled-ssh-'))
  for (const [name, text] of [
    ['ssh', SSH],
    ['puzzlectl', PUZZLECTL],
  ] as const) {
    writeFileSync(join(root, name), text)
    chmodSync(join(root, name), 0o755)
  }
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

function call(...args: string[]) {
  const env = { PATH: `${root}:${process.env.PATH ?? ''}`, HOME: root, LETTERS: "a'b c" }
  const done = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env, input: 'typed' })
  return { status: done.status, err: done.stderr, out: done.stdout }
}
const there = (...args: string[]): unknown => JSON.parse(call(...args).out)

describe('--host', () => {
  it('runs the same there, with its input, its output and its exit status', () => {
    const { status, out, err } = call('--host', 'me@there', 'show', 'abc', '--json')
    expect(status).toBe(42)
    expect(JSON.parse(out)).toEqual({ args: ['show', '--json', '--', 'abc'], input: 'typed' })
    expect(err).toMatch(/^ssh -T\|(ssh -o\|ssh ServerAlive\w+=\d+\|){2}ssh --\|ssh me@there\|/)
  })

  it('takes hostile words for what they are', () => {
    const hostile = [
      '$(touch x)',
      '`id`',
      "a'; rm -rf / #",
      '--host',
      '-oProxyCommand=x',
      'a\nb',
      '\\',
      '*',
      '',
    ]
    expect(
      there('run', '--host=m', '--base', '/b', '--name', 'n $HOME', '--', 'sh', ...hostile),
    ).toMatchObject({
      args: ['run', '--base=/b', '--cwd=/b', '--name=n $HOME', '--', 'sh', ...hostile],
    })
    expect(there('queue', 'drop', '--host', 'm', '-m', '--json', 'id', 'r')).toMatchObject({
      args: ['queue', 'drop', '--message=--json', '--', 'id', 'r'],
    })
  })

  it('passes a variable on with the value that it has here', () =>
    expect(there('exec', '--host', 'm', '--env', 'LETTERS', 'id', '--', 'true')).toMatchObject({
      args: ['exec', "--env=LETTERS=a'b c", '--', 'id', 'true'],
    }))

  it.each(['-oProxyCommand=touch x', 'me@-x', '', 'a b', 'a\nb', 'a;b', '$(b)', '`b`'])(
    'refuses the machine %j',
    (host) => {
      const { status, err } = call(`--host=${host}`, 'ls')
      expect([status, err]).toEqual([2, expect.stringContaining('is not a machine')])
    },
  )

  it('forks no home by mistake', () => {
    const { status, err } = call('--host=m', 'run', '--', 'true')
    expect([status, err]).toEqual([2, expect.stringContaining('--host needs --base')])
  })

  it('says so when there is no ssh', () => {
    const done = spawnSync(process.execPath, [program, '--host', 'm', 'ls'], {
      encoding: 'utf8',
      env: { PATH: join(root, 'nowhere') },
    })
    expect([done.status, done.stderr]).toEqual([69, expect.stringContaining('needs the program ssh')])
  })
})

describe('words for a shell', () => {
  it('arrive as they were', () => {
    const words = fc.array(
      fc.string({ unit: 'binary' }).filter((word) => !word.includes('\0')),
      { minLength: 1 },
    )
    fc.assert(
      fc.property(words, (sent) => {
        const script = `printf '%s\\0' ${sent.map(quotedWord).join(' ')}`
        const { stdout } = spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8' })
        const expected = sent.map((word) => Buffer.from(word).toString())
        expect(stdout.split('\0').slice(0, -1)).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  })

  it('hold every option that was given', () =>
    expect(
      commandWords(
        {
          options: [
            ['-f, --follow', ''],
            ['--only <glob>', '', 'repeat'],
            ['--name-only', ''],
          ],
        },
        ['x'],
        ['-a'],
        { follow: true, only: ['a', '-b'], nameOnly: true, json: true, host: 'm' },
      ),
    ).toEqual(['x', '--json', '--follow', '--only=a', '--only=-b', '--name-only', '--', '-a']))
})
