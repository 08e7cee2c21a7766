import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { BUDGET_KINDS } from '../../daemon/contract/profile.ts'
import { needs, program } from '../tier/needs.ts'
import { inProject } from './grounds.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const { here, hold } = inProject('all')
let folder: string
let branch: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'puzzled-shell-'))
  const script = `#!/bin/sh\nexec '${process.execPath}' '${puzzlectl}' "$@" --state-dir '${here.state}'\n`
  writeFileSync(join(folder, 'puzzlectl'), script)
  chmodSync(join(folder, 'puzzlectl'), 0o755)
  await hold('echo a > a', '--name', 'nice-name')
  branch = (JSON.parse((await here.puzzlectl('ls', '--json')).out) as { id: string }[])[0]?.id ?? ''
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** What a shell offers where the last word is being typed, by a program that prints one candidate per line. */
async function offered(shell: 'bash' | 'zsh' | 'fish', words: readonly string[]): Promise<string[]> {
  const { out } = await here.puzzlectl('completion', shell)
  const file = join(folder, `completion.${shell}`)
  writeFileSync(file, out)
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, HOME: folder, FILE: file }
  const [command, ...options] = SHELLS[shell]
  const done = spawnSync(command, [...options, ...words], { encoding: 'utf8', env, cwd: here.project })
  expect([done.status, done.stderr]).toEqual([0, ''])
  return done.stdout.split('\n').filter((line) => line !== '')
}

const BASH = `source "$FILE"
complete -p puzzlectl >/dev/null || exit 9
# compopt needs a completion in progress.
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _puzzlectl
printf '%s\\n' "\${COMPREPLY[@]}"`
/** zsh's own functions are told apart by what they would show: candidates, descriptions, files. */
const ZSH = `compdef() { :; }
_files() { print -l -- *(N) }; _command_names() { print sh }; compset() { words[CURRENT]=\${words[CURRENT]#*=} }
_describe() { local name=$argv[-1]; print -l -- \${(P)name} | sed 's/:.*//' }
compadd() {
  [[ $1 == -S ]] && shift 2
  [[ $1 == -- ]] && shift
  if [[ $1 == -a ]]; then print -l -- \${(P)2}; else print -l -- "$@"; fi
}
source "$FILE"
words=("$@"); CURRENT=$#; _puzzlectl`
const FISH = `source $FILE; complete -C (string join ' ' -- $argv) | string replace -r '\\t.*' ''; or true`

const SHELLS = {
  bash: ['bash', '--norc', '-c', BASH, 'bash'],
  zsh: ['zsh', '-f', '-c', ZSH, 'zsh'],
  fish: ['fish', '--no-config', '-c', FISH],
} as const

describe.each(['bash', 'zsh', 'fish'] as const)('%s', (shell) => {
  const it = needs(program(shell))
  const line = async (...words: string[]): Promise<string[]> => offered(shell, ['puzzlectl', ...words])

  it('offers verbs and inner verbs', async () => {
    expect(await line('')).toEqual(expect.arrayContaining(['run', 'ls', 'queue', 'completion']))
    expect((await line('queue', '')).sort()).toEqual(['drop', 'edit', 'ls', 'resume', 'show', 'skip'])
  })

  it('offers the options of a verb, and what their values can be', async () => {
    const options = await line('run', '--')
    expect(options).toEqual(expect.arrayContaining(['--then', '--profile', '--json', '--help']))
    expect(options).not.toContain('--only')
    expect(await line('audit', 'verify', '--k')).toContain('--key')
    expect((await line('run', '--then', '')).sort()).toEqual(['discard', 'gate', 'hold'])
    expect((await line('run', '--restart', '')).sort()).toEqual(['always', 'never', 'on-failure'])
    expect(await line('run', '--profile', 'st')).toEqual(expect.arrayContaining(['standard', 'strict']))
    const budgets = await line('run', '--budget', '')
    expect(budgets).toEqual(expect.arrayContaining(BUDGET_KINDS.map((kind) => `${kind}=`)))
  })

  it('offers branches by id and by name, wherever one is meant', async () => {
    for (const words of [
      ['show'],
      ['diff', '--stat'],
      ['queue', 'ls'],
      ['discard', 'x'],
      ['events', '--branch'],
    ])
      expect([words, (await line(...words, '')).filter((word) => !word.startsWith('a'))]).toEqual([
        words,
        expect.arrayContaining([...(branch.startsWith('a') ? [] : [branch]), 'nice-name']),
      ])
    expect(await line('profile', 'show', '')).toContain('read-only')
    expect(await line('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
    expect(await line('signal', 'nice-name', 'K')).toContain('KILL')
  })
})

describe('bash', () => {
  const it = needs(program('bash'))
  const line = async (...words: string[]): Promise<string[]> => offered('bash', ['puzzlectl', ...words])

  it('reads the line as the program does', async () => {
    expect(await line('--json', 'show', 'nice')).toEqual(['nice-name'])
    expect(await line('--state-dir', 'show', '')).toContain('run')
    // --then=ho, as bash hands it over.
    expect(await line('run', '--then', '=', 'ho')).toEqual(['hold'])
    expect(await line('run', '--then', '=')).toHaveLength(3)
    expect(await line('run', '--name', 'x', '--', 'compge')).toContain('compgen')
    expect(await line('run', '--', 'cat', '--js')).toEqual([])
    expect(await line('show', 'nice-name', '')).toEqual([''].filter(Boolean))
  })

  it('never expands what it is told', async () => {
    const hostile = join(folder, 'puzzlectl')
    const before = (await line('show', '')).length
    writeFileSync(
      hostile,
      `#!/bin/sh\nprintf 'ID NAME\\n$(touch${'$'}{IFS}owned) \`touch\${IFS}owned\`\\n'\n`,
    )
    chmodSync(hostile, 0o755)
    expect([before > 0, await line('show', ''), await line('')]).toEqual([true, [], expect.any(Array)])
    expect((await line('run', '--base', '')).includes('owned')).toBe(false)
  })
})
