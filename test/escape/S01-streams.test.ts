import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { DEVELOPER, type Workplace, workplace } from '../e2e/cli.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, parseReport } from './attack.ts'

const check = needs(root, program('gcc'))
const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const BYTES = 3_000_000

let here: Workplace
beforeEach(() => {
  here = workplace()
})
afterEach(() => here.remove())

/** The developer's own file, beside the project. */
function privateFile(name: string): string {
  const path = join(dirname(here.project), name)
  writeFileSync(path, 'before\n')
  chownSync(path, DEVELOPER, DEVELOPER)
  chmodSync(path, 0o600)
  return path
}

const environment = {
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '/root',
  SUDO_UID: String(DEVELOPER),
  SUDO_GID: String(DEVELOPER),
  SUDO_USER: 'dev',
}

const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })

/** `argv < in >> out`; what it says on descriptor 2 comes back. */
async function redirected(argv: readonly string[]): Promise<{ input: string; output: string; said: string }> {
  const [input, output] = [privateFile('in'), privateFile('out')]
  const fds = [openSync(input, 'r'), openSync(output, 'a')] as const
  const [command = '', ...args] = argv
  const child = spawn(command, args, { cwd: here.project, env: environment, stdio: [...fds, 'pipe'] })
  for (const fd of fds) closeSync(fd)
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  expect(await ended(child), said).toBe(0)
  return { input, output, said }
}

const inBranch = (...command: string[]): string[] => [
  process.execPath,
  puzzlectl,
  'run',
  '--state-dir',
  here.state,
  '--',
  ...command,
]

describe('S1 files behind the standard streams', () => {
  check('control: outside, their owner changes mode, times and attributes without a path', async () => {
    const user = ['setpriv', `--reuid=${DEVELOPER}`, `--regid=${DEVELOPER}`, '--clear-groups', '--']
    const { input, said } = await redirected([...user, attack('streams')])
    expect(parseReport(said)).toMatchObject({
      'mode-of-input': 'OK',
      'times-of-input': 'OK',
      'mode-of-output': 'OK',
      'length-of-output': 'OK',
    })
    expect(statSync(input).mode & 0o7777).toBe(0o777)
  })

  check('an agent reaches none of them, and what it says arrives', async () => {
    copyFileSync(attack('streams'), join(here.project, 'streams'))
    const { input, output, said } = await redirected(inBranch('./streams'))
    expect(parseReport(said)).toMatchObject({
      'mode-of-input': 'EPERM',
      'times-of-input': 'EPERM',
      'mode-of-output': 'EPERM',
      'attribute-of-output': 'EPERM',
      'length-of-output': 'EINVAL',
    })
    expect(statSync(input).mode & 0o7777).toBe(0o600)
    expect(statSync(output).mode & 0o7777).toBe(0o600)
    expect(statSync(input).mtimeMs).toBeGreaterThan(1_000)
    expect(readFileSync(output, 'utf8')).toBe('before\nsaid\n')
  })

  check('input from a file is read, to its end', async () => {
    const { output } = await redirected(inBranch('cat'))
    expect(readFileSync(output, 'utf8')).toBe('before\nbefore\n')
  })

  check('output arrives whole at a reader that is slower than the agent', async () => {
    const argv = inBranch('python3', '-c', `import sys; sys.stdout.write("x" * ${BYTES})`)
    const script = '"$@" | (sleep 1; wc -c)'
    const child = spawn('sh', ['-c', script, 'sh', ...argv], { cwd: here.project, env: environment })
    let out = ''
    child.stdout.on('data', (bytes: Buffer) => {
      out += bytes
    })
    expect(await ended(child)).toBe(0)
    expect(Number(out)).toBe(BYTES)
  })
})
