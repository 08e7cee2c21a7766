import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
/** What an installation consists of, and its one dependency. */
const PARTS = [
  'package.json',
  'dist',
  'policies',
  'daemon/native/prebuilt',
  'node_modules/koffi',
  'node_modules/@koromix',
]

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'puzzled-closed-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

/** Homes of Debian are like this: whatever gives up root's rights cannot read our own files any more. */
needs(root)('a checkout that only its owner may enter judges and commits like any other', () => {
  const app = join(dir, 'home/puzzled')
  for (const part of PARTS)
    if (existsSync(join(repository, part)))
      cpSync(join(repository, part), join(app, part), { recursive: true })
  chmodSync(join(dir, 'home'), 0o700)
  chmodSync(dir, 0o700)
  const project = join(dir, 'project')
  mkdirSync(project)
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  const command = ['run', '--state-dir', join(dir, 'state'), '--', 'sh', '-c', 'echo hello > hello.txt']
  const done = spawnSync(process.execPath, [join(app, 'dist/puzzlectl.js'), ...command], {
    cwd: project,
    env,
    encoding: 'utf8',
  })
  expect([done.status, done.stderr]).toEqual([0, expect.stringContaining('committed as')])
  expect(readFileSync(join(project, 'hello.txt'), 'utf8')).toBe('hello\n')
})
