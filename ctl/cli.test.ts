import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

const program = fileURLToPath(new URL('../dist/puzzlectl.js', import.meta.url))
const call = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  return { status, out: stdout, err: stderr }
}

describe('a wrong command line', () => {
  it.each([
    [
      ['rnu'],
      "puzzlectl: unknown command 'rnu'; did you mean run?\n  hint: puzzlectl --help lists the verbs\n",
    ],
    [['ps'], "puzzlectl: unknown command 'ps'; did you mean ls?\n  hint: puzzlectl --help lists the verbs\n"],
    [
      ['help', 'rnu'],
      "puzzlectl: unknown command 'rnu'; did you mean run?\n  hint: puzzlectl --help lists the verbs\n",
    ],
    [
      ['help', 'nonsense'],
      "puzzlectl: unknown command 'nonsense'\n  hint: puzzlectl --help lists the verbs\n",
    ],
    [
      ['help', 'queue', 'lss'],
      "puzzlectl: unknown command 'lss'; did you mean ls?\n  hint: puzzlectl queue --help\n",
    ],
    [['help', 'run', 'x'], "puzzlectl: run has no verb 'x'\n  hint: puzzlectl run --help\n"],
    [['queue', 'ls'], "puzzlectl: missing required argument 'id'\n  hint: puzzlectl queue ls --help\n"],
    [
      ['diff', '--stta', 'x'],
      "puzzlectl: unknown option '--stta'; did you mean --stat?\n  hint: puzzlectl diff --help\n",
    ],
    [
      ['run', '-e', 'X=1', '-t', '--', 'true'],
      'puzzlectl: --tty is for --detach: at a terminal the command gets one anyway\n',
    ],
    [
      ['s\u001b[2J\nw'],
      "puzzlectl: unknown command 's\\e[2J\\nw'\n  hint: puzzlectl --help lists the verbs\n",
    ],
  ])('%j is one sentence and what to type next', (args, expected) => {
    expect(call(...args)).toEqual({ status: 2, out: '', err: expected })
  })

  it('is a document for programs', () => {
    const { status, out } = call('show', '--json')
    expect([status, JSON.parse(out)]).toEqual([
      2,
      { error: { code: 'usage', message: "missing required argument 'id'" } },
    ])
    // What stands behind -- is somebody else's.
    expect(call('diff', '--nope', '--', '--json').out).toBe('')
  })
})

describe('output for which there is no space', () => {
  it.each([[[]], [['--json']]])('%j is a sentence and a status, not a stack', (options) => {
    const full = openSync('/dev/full', 'w')
    const done = spawnSync(process.execPath, [program, 'profile', 'list', ...options], {
      encoding: 'utf8',
      stdio: ['ignore', full, 'pipe'],
    })
    closeSync(full)
    expect([done.status, done.stderr]).toEqual([
      73,
      'puzzlectl: Cannot write the output: no space is left where it goes\n',
    ])
  })
})

describe('output that cannot be written for another reason', () => {
  const redirected = (redirection: string, ...args: string[]) => {
    const script = `"$@" ${redirection}`
    return spawnSync('sh', ['-c', script, 'sh', process.execPath, program, ...args], { encoding: 'utf8' })
  }

  it('is a sentence and a status, too', () => {
    const { status, stderr } = redirected('1< /etc/passwd', 'profile', 'list')
    expect([status, stderr]).toEqual([71, 'puzzlectl: Cannot write the output: EBADF\n'])
  })

  it('leaves the status, where it is what was wrong that cannot be told', () =>
    expect(redirected('2< /etc/passwd', 'profile', 'show', 'no-such').status).toBe(65))
})

describe('help', () => {
  it('is the same by option and by verb, and tells what is special about a verb first', () => {
    const { status, out } = call('run', '--help')
    expect([status, call('help', 'run').out]).toEqual([0, out])
    expect(out.indexOf('--then')).toBeLessThan(out.indexOf('--json'))
    expect(call('help', 'queue', 'ls').out).toBe(call('queue', 'ls', '--help').out)
    expect(call('help').out).toBe(call('--help').out)
    expect(call('--version').out).toMatch(/^puzzlectl \d+\.\d+\.\d+\n$/)
  })
})

/** Node cannot hand on bytes that are not UTF-8; a shell can. */
const shell = (script: string, cwd: string) => {
  const args = ['-c', script, process.execPath, program]
  const { status, stdout, stderr } = spawnSync('sh', args, { encoding: 'utf8', cwd })
  return { status, out: stdout, err: stderr }
}

describe('bytes that are not UTF-8', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bytes-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('are never passed on as another name', () => {
    const lost = shell('"$0" "$1" explain -- printf "$(printf "a\\377b")"', folder)
    expect([lost.status, lost.err]).toEqual([
      2,
      expect.stringMatching(/^puzzlectl: The argument "a\ufffdb" is not UTF-8\n {2}hint: Let a shell/),
    ])
  })

  it('and the sign that stands for them is a letter as any other', () => {
    const { status, out } = shell('"$0" "$1" explain --json -- printf "a\ufffdb"', folder)
    expect([status, out.includes('a\ufffdb')]).toEqual([0, true])
  })

  it('in the name of the directory are a reason of its own', () => {
    const script = 'd="$(printf "a\\377b")"; mkdir "$d"; cd "$d"; "$0" "$1" explain -- true'
    expect(shell(script, folder)).toMatchObject({
      status: 2,
      err: expect.stringMatching(
        /^puzzlectl: The name of the working directory "[^"]*a\ufffdb" is not UTF-8\n/,
      ),
    })
  })
})
