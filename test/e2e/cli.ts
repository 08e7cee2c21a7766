import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))

export interface Ended {
  status: number | null
  out: string
  err: string
}

export interface Workplace {
  /** A project directory that belongs to an ordinary user, as projects do. */
  project: string
  state: string
  puzzlectl(...args: string[]): Promise<Ended>
  /** The same as another user would run it through sudo. */
  asUser(uid: number, ...args: string[]): Promise<Ended>
  remove(): void
}

export const DEVELOPER = 1000
export const REVIEWER = 1001

/** A project and a store of its own in a temporary directory; nothing of the machine's own store is touched. */
export function workplace(): Workplace {
  const root = mkdtempSync(join(tmpdir(), 'puzzled-e2e-'))
  // mkdtemp makes it private to root; the developer must be able to reach the project.
  const project = join(root, 'project')
  const state = join(root, 'state')
  mkdirSync(project)
  chmodSync(root, 0o755)
  chownSync(project, DEVELOPER, DEVELOPER)
  const call = (uid: number, args: string[]): Promise<Ended> => run(project, state, uid, args)
  return {
    project,
    state,
    puzzlectl: (...args) => call(DEVELOPER, args),
    asUser: (uid, ...args) => call(uid, args),
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

const run = (project: string, state: string, uid: number, args: string[]): Promise<Ended> =>
  begin(project, state, uid, args).ended

/** A command that runs until it ends or is killed. */
export function begin(
  project: string,
  state: string,
  uid: number,
  args: string[],
  failpoints = '',
): { kill(): Promise<void>; signal(name: NodeJS.Signals): void; ended: Promise<Ended> } {
  // Options go behind the verb, and behind the second word of verbs that have one.
  const words = args[0] === 'queue' || args[0] === 'net' ? 2 : 1
  const [verb, rest] = [args.slice(0, words), args.slice(words)]
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '/root',
    SUDO_UID: String(uid),
    SUDO_GID: String(uid),
    SUDO_USER: `user${uid}`,
    PUZZLED_FAILPOINTS: failpoints,
  }
  const child = spawn(process.execPath, [program, ...verb, '--state-dir', state, ...rest], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    // Not "close": what a killed command leaves running may hold its output.
    child.on(failpoints === '' ? 'close' : 'exit', (status) => resolve({ status, out, err }))
  })
  const exited = new Promise<void>((resolve) => void child.once('exit', () => resolve()))
  // Until it is gone its branch is rightly said to run.
  const kill = (): Promise<void> => {
    child.kill('SIGKILL')
    return exited
  }
  return { kill, signal: (name) => void child.kill(name), ended }
}
