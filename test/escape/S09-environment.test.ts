import { describe, expect } from 'vitest'
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
