import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'

const sources = fileURLToPath(new URL('attacks/', import.meta.url))
const built = new Map<string, string>()
let folder: string | undefined

/** A folder of this test file that lives as long as its tests. Anybody may enter it and execute what is in it. */
export function attackFolder(): string {
  if (folder !== undefined) return folder
  folder = mkdtempSync(join(tmpdir(), 'attack-'))
  execFileSync('chmod', ['755', folder, tmpdir()])
  return folder
}

beforeAll(() => {
  attackFolder()
})

afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

/** Compiles attacks/NAME.c, static so that it runs in every root, and returns the program's path. */
export function attack(name: string): string {
  const known = built.get(name)
  if (known !== undefined) return known
  const program = join(attackFolder(), name)
  execFileSync(
    'gcc',
    ['-std=gnu17', '-O1', '-static', '-pthread', '-o', program, join(sources, `${name}.c`)],
    {
      stdio: ['ignore', 'inherit', 'ignore'],
    },
  )
  built.set(name, program)
  return program
}

/** What an attack says, one `NAME RESULT` per line; words before are of no interest. */
export function parseReport(text: string): Record<string, string> {
  const report: Record<string, string> = {}
  for (const [, name, result] of text.matchAll(/(\S+) (\S+)$/gm)) report[name ?? ''] = result ?? ''
  return report
}

/**
 * Runs a program outside of any branch, as root: the positive control. It has mounts, names and IPC objects of its own,
 * because there the attack is meant to succeed.
 */
export function outside(argv: readonly string[], options: { cwd?: string; asNobody?: boolean } = {}): string {
  const drop =
    options.asNobody === true ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  const room = ['--mount', '--uts', '--ipc', '--propagation', 'private', '--', ...drop, ...argv]
  return execFileSync('unshare', room, {
    cwd: options.cwd ?? attackFolder(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** Starts a long-running attack outside; `output` fills up. End it with `kill`. */
export function startOutside(
  argv: readonly string[],
  options: { asNobody?: boolean } = {},
): { child: ChildProcess; output: () => string; ended: Promise<void> } {
  const drop = options.asNobody === true ? ['--reuid=65534', '--regid=65534', '--clear-groups'] : []
  const child = spawn('setpriv', [...drop, '--', ...argv], { stdio: ['pipe', 'pipe', 'inherit'] })
  const parts: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return { child, output: () => Buffer.concat(parts).toString('utf8'), ended }
}
