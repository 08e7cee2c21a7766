import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { PuzzledError } from '../daemon/lib/errors.ts'

/** systemd runs as PID 1 of this machine. */
export const hasSystemd = (): boolean => existsSync('/run/systemd/system')

/** Runs one administrative program; what it complains about becomes the error. */
export function administer(program: string, ...args: string[]): string {
  const done = spawnSync(program, args, { encoding: 'utf8' })
  if (done.status === 0) return done.stdout
  const said = done.error?.message ?? done.stderr.trim()
  throw new PuzzledError('kernel-refused', `Cannot ${[program, ...args].join(' ')}: ${said}`)
}

/** One property of a unit, as systemd shows it. */
export const unitProperty = (unit: string, property: string): string =>
  administer('systemctl', 'show', '--value', '--property', property, unit).trim()

/** What only root may do on a host with systemd is refused before anything is written. */
export function requireSystemdRoot(what: string): void {
  if (process.geteuid?.() !== 0)
    throw new PuzzledError('not-root', `Cannot ${what} the daemon as an ordinary user`, {
      hint: `sudo puzzlectl daemon ${what}`,
    })
  if (!hasSystemd())
    throw new PuzzledError('feature-missing', `Cannot ${what} the daemon: systemd is not PID 1 here`, {
      hint: 'puzzlectl run works without a daemon; another service manager can start `puzzled` itself',
    })
}
