import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const systemd = fileURLToPath(new URL('../../../systemd/', import.meta.url))
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' })
const UNITS = ['puzzled.service', 'puzzle.slice', 'puzzled-cleanup.service', 'puzzled-cleanup.timer']

describe('the files of systemd/, as installed', () => {
  const programs = ['/usr/bin/puzzled', '/usr/bin/puzzlectl']
  const made = [...UNITS.map((unit) => `/etc/systemd/system/${unit}`)]

  beforeAll(() => {
    for (const unit of UNITS) copyFileSync(systemd + unit, `/etc/systemd/system/${unit}`)
    for (const program of programs.filter((path) => !existsSync(path))) {
      writeFileSync(program, '#!/bin/sh\n')
      chmodSync(program, 0o755)
      made.push(program)
    }
    run('systemctl', 'daemon-reload')
  })
  afterAll(() => {
    for (const path of made) rmSync(path)
    run('systemctl', 'daemon-reload')
  })

  it('are units without a mistake, says systemd-analyze', () => {
    const names = UNITS.map((unit) => `/etc/systemd/system/${unit}`)
    const done = spawnSync('systemd-analyze', ['verify', '--man=no', ...names], { encoding: 'utf8' })
    expect({ status: done.status, said: done.stderr }).toEqual({ status: 0, said: '' })
  })

  it('leave the daemon without the rights that it does not need', () => {
    const report = run('systemd-analyze', 'security', '--no-pager', 'puzzled.service')
    console.log(report)
    const line = (setting: string): string => report.split('\n').find((text) => text.includes(setting)) ?? ''
    for (const setting of [
      'CapabilityBoundingSet=~CAP_SYS_MODULE',
      'CapabilityBoundingSet=~CAP_SYS_RAWIO',
      'CapabilityBoundingSet=~CAP_SYS_BOOT',
      'CapabilityBoundingSet=~CAP_SYS_TIME',
      'SystemCallFilter=~@module',
      'SystemCallFilter=~@raw-io',
      'NoNewPrivileges=',
      'LockPersonality=',
    ])
      expect(line(setting), setting).toMatch(/^\s*✓/)
  })

  it('make the groups and the folders', () => {
    run('systemd-sysusers', `${systemd}puzzled.sysusers.conf`)
    expect(run('getent', 'group', 'puzzled', 'puzzled-reviewers').trim().split('\n')).toHaveLength(2)
    run('systemd-tmpfiles', '--create', `${systemd}puzzled.tmpfiles.conf`)
    expect(run('stat', '-c', '%a %U', '/var/lib/puzzled').trim()).toBe('700 root')
  })

  it('are accepted by the bus: root owns the name and nobody else does', () => {
    mkdirSync('/etc/dbus-1/system.d', { recursive: true })
    copyFileSync(`${systemd}org.puzzled1.conf`, '/etc/dbus-1/system.d/org.puzzled1.conf')
    run('systemctl', 'reload', 'dbus.service')
    const own = (user: string): string =>
      spawnSync('runuser', ['-u', user, '--', 'python3', '-c', OWN_NAME], { encoding: 'utf8' }).stdout.trim()
    expect(own('root')).toBe('owner')
    expect(own('mallory')).toBe('org.freedesktop.DBus.Error.AccessDenied')
    rmSync('/etc/dbus-1/system.d/org.puzzled1.conf')
  })

  it('define the actions that the daemon asks polkit for', () => {
    const actions = '/usr/share/polkit-1/actions'
    copyFileSync(`${systemd}org.puzzled1.policy`, `${actions}/org.puzzled1.policy`)
    copyFileSync(`${systemd}50-puzzled.rules`, '/etc/polkit-1/rules.d/50-puzzled.rules')
    run('systemctl', 'restart', 'polkit.service')
    expect(readdirSync(actions)).toContain('org.puzzled1.policy')
    const may = (user: string, action: string): number | null =>
      spawnSync('runuser', ['-u', user, '--', 'sh', '-c', `pkcheck -a org.puzzled1.${action} -p $$`]).status
    expect({ alice: may('alice', 'manage'), bob: may('bob', 'approve') }).toEqual({ alice: 0, bob: 0 })
    expect(may('alice', 'approve')).not.toBe(0)
    expect(may('mallory', 'manage')).not.toBe(0)
    rmSync(`${actions}/org.puzzled1.policy`)
    rmSync('/etc/polkit-1/rules.d/50-puzzled.rules')
  })
})

const OWN_NAME = `
import dbus
try:
    dbus.SystemBus().request_name('org.puzzled1')
    print('owner')
except dbus.DBusException as error:
    print(error.get_dbus_name())
`
