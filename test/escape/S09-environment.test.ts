import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'
import { outside } from './attack.ts'
import { branchFor, commandIn } from './harness.ts'

const check = needs(root)
const HOSTILE = {
  LD_PRELOAD: '/nowhere/evil.so',
  LD_LIBRARY_PATH: '/nowhere',
  BASH_ENV: '/nowhere/evil.sh',
  ENV: '/nowhere/evil.sh',
  NODE_OPTIONS: '--require=/nowhere/evil.js',
  NODE_PATH: '/nowhere',
  GIT_DIR: '/nowhere',
  GIT_SSH_COMMAND: '/nowhere/evil',
  PYTHONSTARTUP: '/nowhere/evil.py',
  PERL5OPT: '-Mevil',
  AWS_SECRET_ACCESS_KEY: 'secret',
}

describe('S9 the environment', () => {
  check('control: outside, what surrounds the caller reaches the program', () => {
    process.env.GIT_DIR = HOSTILE.GIT_DIR
    expect(outside(['env'])).toContain('GIT_DIR=/nowhere')
    delete process.env.GIT_DIR
  })

  check('nothing of what surrounds the launcher reaches the agent', async () => {
    const kept = { ...process.env }
    // Of these only what is harmless to this very process is set for real; LD_PRELOAD would break its children.
    Object.assign(process.env, HOSTILE)
    const branch = branchFor()
    const { output } = await commandIn(branch, ['env']).finally(() => {
      for (const name of Object.keys(HOSTILE)) delete process.env[name]
      Object.assign(process.env, kept)
    })
    const names = output.split('\n').flatMap((line) => line.split('=')[0] || [])
    expect(names.sort()).toEqual(['HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER'])
  })
})

/** A working directory that somebody else has prepared, where root then calls puzzled. */
describe('S9 the program itself', () => {
  const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
  const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url))
  let trap = ''
  let caught = ''
  let store = ''

  beforeEach(() => {
    trap = mkdtempSync(join(tmpdir(), 'trap-'))
    caught = join(trap, 'caught')
    store = mkdtempSync(join(tmpdir(), 'store-'))
    const evil = `require('fs').writeFileSync(${JSON.stringify(caught)}, module.filename)\n`
    // Every package that there is to be found, and the names by which Node loads something without being asked.
    const names = readdirSync(modules).filter((name) => /^[a-z]/.test(name))
    for (const name of names) {
      mkdirSync(join(trap, 'node_modules', name), { recursive: true })
      writeFileSync(join(trap, 'node_modules', name, 'index.js'), evil)
    }
    for (const folder of ['node_modules', '.']) {
      for (const name of ['koffi.js', 'index.js', 'yaml.js', 'preload.js'])
        writeFileSync(join(trap, folder, name), evil)
      writeFileSync(join(trap, folder, 'koffi.node'), 'no library')
    }
    writeFileSync(join(trap, 'package.json'), '{"main":"preload.js","imports":{"#x":"./preload.js"}}')
    writeFileSync(join(trap, 'puzzled.yaml'), 'state_dir: /nowhere\n')
    mkdirSync(join(trap, 'dist', 'workers'), { recursive: true })
    for (const name of readdirSync(join(dist, 'workers')))
      writeFileSync(join(trap, 'dist', 'workers', name), evil)
  })
  afterEach(() => {
    for (const folder of [trap, store]) rmSync(folder, { recursive: true, force: true })
  })

  const call = (...args: string[]): SpawnSyncReturns<string> =>
    spawnSync(process.execPath, args, {
      cwd: trap,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: trap, NODE_PATH: `${trap}:${join(trap, 'node_modules')}` },
    })

  check('control: another program is caught by the place where it is called', () => {
    expect(call('-e', "require('koffi')").status).toBe(0)
    expect(existsSync(caught)).toBe(true)
  })

  check('takes nothing from the place where it is called, nor from NODE_PATH', () => {
    const state = ['--state-dir', join(store, 'state')]
    const ran = call(join(dist, 'puzzlectl.js'), 'run', ...state, '--', 'sh', '-c', 'echo x > f')
    expect([ran.status, ran.stderr]).toEqual([0, expect.any(String)])
    expect(existsSync(join(trap, 'f'))).toBe(true)
    for (const verb of [['ls'], ['doctor'], ['explain', '--', 'true'], ['policy', 'test']])
      call(join(dist, 'puzzlectl.js'), ...verb, ...(verb[0] === 'ls' ? state : []))
    // Whether a bus is there or not: it has loaded what it needs before it asks for one.
    call(join(dist, 'puzzled.js'), '--version')
    expect(existsSync(caught)).toBe(false)
  })
})
