import { spawnSync } from 'node:child_process'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { needs } from '../tier/needs.ts'
import { inProject } from './grounds.ts'
import { noSshd, type OtherMachine, otherMachine, script } from './sshd.ts'
import { noTypist, typing } from './typist.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const it = needs(...noSshd, noTypist)
const { here, text } = inProject('all')
let machine: OtherMachine | undefined
beforeAll(async () => {
  if (noSshd.some((reason) => reason !== undefined)) return
  machine = await otherMachine()
  // Options of ours go behind the verb; what stands behind -- is not ours.
  const lines = `verb=$1; shift\nexec '${process.execPath}' '${puzzlectl}' "$verb" --state-dir '${here.state}' "$@"`
  script(join(machine.there, 'puzzlectl'), lines)
})
afterAll(() => machine?.close())

const env = () => ({ PATH: `${machine?.bin}:${process.env.PATH}`, HOME: '/nonexistent', TERM: 'xterm' })
function call(command: readonly string[]) {
  const [file = '', ...args] = command
  const done = spawnSync(file, args, { encoding: 'utf8', env: env(), input: '' })
  return { status: done.status, out: done.stdout, err: done.stderr }
}
const onHost = (host: string, ...args: string[]): string[] => [
  ...[process.execPath, puzzlectl, '--host', host],
  ...args,
]
const there = (...args: string[]) => call(onHost('there', ...args))
const RUN = (...options: string[]): string[] => ['run', '--base', here.project, ...options]

describe('on another machine, over ssh', () => {
  it('an agent runs, its work is looked at and approved, and statuses come back', () => {
    const agent = 'echo out; echo err >&2; echo "it\'s \\$HOME" > a.txt; exit 7'
    const ran = there(
      ...RUN('--name', 'far', '--then', 'hold'),
      ...['--', 'sh', '-c', `cd '${here.project}'; ${agent}`],
    )
    expect([ran.status, ran.out]).toEqual([7, 'out\n'])
    expect(ran.err).toMatch(/^err\npuzzled: branch far: \+1 ~0 -0/)
    expect(there('diff', 'far').out).toContain("+it's $HOME")
    expect(JSON.parse(there('ls', '--json').out)).toMatchObject([{ name: 'far', state: 'held' }])
    expect(there('exec', 'far', '--', 'sh', '-c', 'cat a.txt; exit 9')).toMatchObject({
      status: 9,
      out: "it's $HOME\n",
    })
    const approved = there('approve', 'far', '-m', "it's good; really")
    expect([approved.status, approved.err]).toEqual([0, ''])
    expect(text('a.txt')).toBe("it's $HOME\n")
    expect(there('show', 'nothing')).toMatchObject({ status: 68, err: expect.stringContaining('no branch') })
  })

  it('a person at a terminal types to the agent there, sees its screen, and the terminal is theirs again', () => {
    const agent = ['sh', '-c', 'stty size; tty; read -r line; echo "got $line"']
    const { out } = call(
      typing(
        ['33 111', 'hello\\n', 'got hello[^$]*nothing to commit'],
        ...onHost('there', ...RUN(), '--', ...agent),
      ),
    )
    expect(out).toContain('/dev/pts/')
    expect(out).toContain('status 0')
  })

  it('Ctrl-C ends the agent there, and nothing is left running', () => {
    const { out } = call(
      typing(
        ['ready', '\\x03', 'nothing to commit'],
        ...onHost('there', ...RUN(), '--', 'sh', '-c', 'echo ready; exec sleep 600'),
      ),
    )
    expect(out).toContain('status 130')
    expect(JSON.parse(there('ls', '--json').out)).toEqual([])
  })
})

describe('says what is wrong', () => {
  it.each([
    ['nobody-there', 'no machine answers', /Connection refused/],
    ['impostor', 'the machine has another key than is known of it', /Host key verification failed/],
    ['stranger', 'the machine does not know the key of the caller', /Permission denied \(publickey\)/],
  ])('of %s: %s', (host, _why, said) => {
    const { status, out, err } = call(onHost(host, 'ls'))
    expect([status, out]).toEqual([255, ''])
    expect(err).toMatch(said)
    expect(err).toMatch(
      new RegExp(`puzzlectl: ssh did not get to "${host}", .*\\n {2}hint: .* ssh ${host} true\\n$`),
    )
    expect(JSON.parse(call(onHost(host, 'ls', '--json')).out)).toMatchObject({ error: { code: 'bus-gone' } })
    // Nothing ran on it, and the right machine is reached all the same.
    expect(there('ls').status).toBe(0)
  })

  it('when no puzzlectl is there', () => {
    const path = join(machine?.there ?? '', 'puzzlectl')
    renameSync(path, `${path}.away`)
    try {
      expect(there('ls')).toEqual({
        status: 69,
        out: '',
        err: expect.stringMatching(
          /^puzzlectl: There is no puzzlectl in the PATH of root on .*\n {2}hint: Install/,
        ),
      })
    } finally {
      renameSync(`${path}.away`, path)
    }
    expect(there('ls').status).toBe(0)
  })

  it.each(['-oProxyCommand=EVIL', 'root@-oProxyCommand=EVIL', 'there;EVIL', '$(EVIL)'])(
    'of the name %s, and ssh never sees it',
    (name) => {
      const evil = script(join(machine?.there ?? '', 'evil'), 'touch "$0.ran"')
      const { status, err } = call(onHost(name.replace('EVIL', evil), 'ls'))
      expect([status, err]).toEqual([2, expect.stringMatching(/is not a machine\n {2}hint: /)])
      expect(existsSync(`${evil}.ran`)).toBe(false)
    },
  )
})
