import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const CONFIG = '/etc/puzzled'

const mount = (...args: string[]): void => {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`mount ${args.join(' ')}: ${stderr}`)
}
const umount = (path: string): void => void spawnSync('umount', [path])

/**
 * Gives a file's own mount namespace an /etc that can be written to; the machine's is beneath it. The result takes it away.
 */
export function ownEtc(): () => void {
  const layers = mkdtempSync(join(tmpdir(), 'puzzled-etc-'))
  for (const name of ['upper', 'work']) mkdirSync(join(layers, name))
  mount(
    ...['-t', 'overlay', 'overlay', '/etc'],
    ...['-o', `lowerdir=/etc,upperdir=${layers}/upper,workdir=${layers}/work`],
  )
  for (const name of ['policies', 'profiles']) mkdirSync(join(CONFIG, name), { recursive: true })
  return () => {
    umount('/etc')
    rmSync(layers, { recursive: true })
  }
}

/** A file of this mount namespace that nobody can read anything from. */
export function emptied(path: string): () => void {
  mount('--bind', '/dev/null', path)
  return () => umount(path)
}

/** A filesystem that keeps nothing and can do little, over a folder of this mount namespace. */
export function onRamfs(path: string): () => void {
  mount('-t', 'ramfs', 'ramfs', path)
  return () => umount(path)
}
