import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../../dist/puzzlectl.js', import.meta.url))

export const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8' })

export interface Said {
  status: number | null
  out: string
  err: string
}

/** What one of the people of the image types: alice is in `puzzled`, bob also in `puzzled-reviewers`, mallory in neither. */
export function as(user: string, cwd: string, ...command: string[]): Said {
  const identity = user === 'root' ? [] : ['runuser', '-u', user, '--']
  const [first = '', ...rest] = [...identity, ...command]
  const done = spawnSync(first, rest, { cwd, encoding: 'utf8' })
  return { status: done.status, out: done.stdout, err: done.stderr }
}

export const puzzlectl = (user: string, cwd: string, ...args: string[]): Said =>
  as(user, cwd, process.execPath, program, ...args)

/** The daemon of this checkout as a real service, and a project of alice's. */
export interface Service {
  readonly project: string
  remove(): void
}

export function installService(): Service {
  const done = puzzlectl('root', '/', 'daemon', 'install')
  if (done.status !== 0) throw new Error(`daemon install: ${done.out}${done.err}`)
  const project = mkdtempSync(join(tmpdir(), 'service-'))
  const uid = Number(run('id', '-u', 'alice'))
  chmodSync(project, 0o755)
  chownSync(project, uid, uid)
  return {
    project,
    remove: () => {
      const gone = puzzlectl('root', '/', 'daemon', 'uninstall')
      rmSync(project, { recursive: true })
      rmSync('/var/lib/puzzled', { recursive: true, force: true })
      mkdirSync('/var/lib/puzzled', { mode: 0o700 })
      if (gone.status !== 0) throw new Error(`daemon uninstall: ${gone.out}${gone.err}`)
    },
  }
}
