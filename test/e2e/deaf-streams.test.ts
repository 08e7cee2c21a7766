import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { type DeafFile, deafFile, fuse } from './deaf-filesystem.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

const POLL = { timeout: 60_000, interval: 200 }
/** A daemon that waits for a filesystem of the caller's does so for ever. */
const ANSWERED_MILLIS = 20_000
const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))

const { here, it } = onBus('each', program('python3'), fuse)
let place: string
let file: DeafFile | undefined

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'deaf-'))
  chmodSync(place, 0o755)
})
afterEach(async () => {
  await file?.end()
  file = undefined
  rmSync(place, { recursive: true })
})

/** Processes of the daemon's that wait in the kernel for the filesystem. */
const copiers = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandOf(pid).startsWith('puzzled-copy'))

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

it.for([
  [0, 'cat'],
  [1, 'yes'],
] as const)(
  'a filesystem of the caller that does not answer, as descriptor %i, holds up nobody else',
  async ([stream, command]) => {
    file = await deafFile(join(place, 'file'), here.daemon.pid ?? 0)
    const words = [process.execPath, puzzlectl, 'run', '--base', here.project, '--', command]
    const redirected = stream === 0 ? `<>${file.path} >/dev/null` : `</dev/null 1<>${file.path}`
    const outside = here.background(WHO.colleague, ['/usr/bin/head', '-c', '1', file.path])
    const held = here.background(WHO.developer, [
      '/bin/sh',
      '-c',
      `exec "$@" ${redirected} 2>&1`,
      'sh',
      ...words,
    ])
    try {
      await expect
        .poll(async () => (await here.puzzlectl(WHO.colleague, 'run', '--', 'true')).status, POLL)
        .toBe(0)
      await expect.poll(async () => (await here.puzzlectl(WHO.root, 'ls')).out, POLL).toContain('running')
      expect(copiers()).toHaveLength(1)
      expect(await Promise.race([outside.exited, 'it waits']), 'control').toBe('it waits')
      const began = performance.now()
      const { status, out } = await here.puzzlectl(WHO.colleague, 'run', '--', 'echo', 'mine')
      expect([status, out]).toEqual([0, expect.stringContaining('mine')])
      expect(performance.now() - began).toBeLessThan(ANSWERED_MILLIS)

      // It is ended like any other, and so is the daemon.
      const [id = ''] = (await here.puzzlectl(WHO.root, 'ls', '-q')).out.split('\n')
      expect((await here.puzzlectl(WHO.root, 'signal', id, 'KILL')).status).toBe(0)
      await expect.poll(async () => (await here.puzzlectl(WHO.root, 'ls')).out, POLL).not.toContain('running')
      here.daemon.kill('SIGKILL')
      await here.start()
      expect((await here.puzzlectl(WHO.root, 'ls')).status).toBe(0)
    } finally {
      await file.end()
      held.child.kill('SIGKILL')
      await Promise.all([held.exited, outside.exited])
    }
    await expect.poll(copiers, POLL).toEqual([])
  },
)
