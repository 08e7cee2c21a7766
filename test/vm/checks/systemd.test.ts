import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' })

it('systemd is PID 1 and nothing has failed', () => {
  expect(readFileSync('/proc/1/comm', 'utf8').trim()).toBe('systemd')
  expect(run('systemctl', '--failed', '--no-legend')).toBe('')
})

it('the unified hierarchy has the controllers that budgets need', () => {
  const controllers = readFileSync('/sys/fs/cgroup/cgroup.controllers', 'utf8').split(/\s+/)
  expect(controllers).toEqual(expect.arrayContaining(['cpu', 'io', 'memory', 'pids']))
})

it('a scope with a limit of processes enforces it', () => {
  const scope = (limit: number): number | null =>
    spawnSync('systemd-run', [
      '--scope',
      '--quiet',
      '-p',
      `TasksMax=${limit}`,
      'sh',
      '-c',
      '(true) && (true)',
    ]).status
  expect(scope(10)).toBe(0)
  expect(scope(1)).not.toBe(0)
})

it('the system bus answers, and the journal keeps fields', () => {
  expect(run('busctl', '--system', 'list', '--no-legend')).toContain('org.freedesktop.systemd1')
  run('sh', '-c', "printf 'MESSAGE=vm check\\nPUZZLED_BRANCH=check\\n' | logger --journald")
  run('journalctl', '--sync')
  expect(run('journalctl', '-o', 'cat', 'PUZZLED_BRANCH=check')).toContain('vm check')
})
