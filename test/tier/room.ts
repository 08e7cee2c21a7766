import { type ChildProcess, fork } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { PoolRunnerInitializer } from 'vitest/node'

type Worker = ReturnType<PoolRunnerInitializer['createPoolWorker']>
type Options = Parameters<PoolRunnerInitializer['createPoolWorker']>[0]

const entrance = fileURLToPath(new URL('enter-room.sh', import.meta.url))

/**
 * Vitest's process pool, with every test file in a room: private mounts, an empty network, a temporary folder and, where
 * no systemd owns the hierarchy, a cgroup of its own. What one file leaves behind, no other file meets, and the
 * residue guard sees only what this file did. Without root it is the ordinary pool.
 */
export const rooms: PoolRunnerInitializer = {
  name: 'rooms',
  createPoolWorker: (options) => new RoomWorker(options),
}

/** Where cgroup v2 is mounted and may be used by hand; a hierarchy that systemd manages is left to it. */
function freeHierarchy(): string | undefined {
  if (existsSync('/run/systemd/system')) return undefined
  const line = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((entry) => entry.includes(' - cgroup2 '))
  return line?.split(' ')[4]
}

class RoomWorker implements Worker {
  readonly name = 'rooms'
  readonly cacheFs = true
  readonly #options: Options
  #child: ChildProcess | undefined
  #temporary = ''
  #cgroup: string | undefined

  constructor(options: Options) {
    this.#options = options
  }

  get #process(): ChildProcess {
    if (this.#child === undefined) throw new Error('The test worker is not running')
    return this.#child
  }

  on(event: string, callback: (argument: never) => void): void {
    this.#process.on(event, callback as () => void)
  }

  off(event: string, callback: (argument: never) => void): void {
    this.#process.off(event, callback as () => void)
  }

  send(message: Parameters<Worker['send']>[0]): void {
    this.#process.send(message as never)
  }

  deserialize(data: unknown): unknown {
    return data
  }

  async start(): Promise<void> {
    const { distPath, env, execArgv, project } = this.#options
    this.#temporary = mkdtempSync(join(tmpdir(), 'puzzled-room-'))
    // Agents and reviewers of other uids must be able to reach what a test makes reachable for them.
    chmodSync(this.#temporary, 0o711)
    const environment: NodeJS.ProcessEnv = {
      ...env,
      TMPDIR: this.#temporary,
      PUZZLED_ROOM_NODE: process.execPath,
    }
    const hierarchy = freeHierarchy()
    const root = process.geteuid?.() === 0
    if (root && hierarchy !== undefined) {
      this.#cgroup = join(hierarchy, `puzzled-room-${this.#temporary.slice(-6)}`)
      mkdirSync(this.#cgroup)
      environment.PUZZLED_ROOM_CGROUP = this.#cgroup
      environment.PUZZLED_ROOM_HIERARCHY = hierarchy
    }
    this.#child = fork(join(distPath, 'workers/forks.js'), [], {
      env: environment,
      execArgv,
      execPath: root ? entrance : process.execPath,
      stdio: 'pipe',
      serialization: 'advanced',
    })
    this.#child.stdout?.pipe(project.vitest.logger.outputStream, { end: false })
    this.#child.stderr?.pipe(project.vitest.logger.errorStream, { end: false })
  }

  async stop(): Promise<void> {
    const child = this.#process
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill()
      const forced = setTimeout(() => child.kill('SIGKILL'), 5000)
      await ended
      clearTimeout(forced)
    }
    if (this.#cgroup !== undefined) removeCgroup(this.#cgroup)
    rmSync(this.#temporary, { recursive: true, force: true })
    this.#child = undefined
  }
}

/** Removes the room's cgroups, innermost first. Processes in them would be residue that the guard has reported. */
function removeCgroup(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeCgroup(join(path, entry.name))
  rmdirSync(path)
}
