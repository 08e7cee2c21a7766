import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { needs } from '../../tier/needs.ts'

const folder = fileURLToPath(new URL('../../../dist-packages', import.meta.url))
const deb = existsSync(folder) ? readdirSync(folder).find((name) => name.endsWith('.deb')) : undefined
const check = needs(deb === undefined ? 'needs npm run package:deb before the VM starts' : undefined)
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' })

/** The image has Node without a Debian package of it, so this one dependency is not looked for. */
const dpkg = (...args: string[]): string => run('dpkg', '--ignore-depends=nodejs', ...args)

describe('the Debian package', () => {
  beforeAll(() => {
    if (deb !== undefined) dpkg('--install', `${folder}/${deb}`)
  })
  afterAll(() => {
    if (deb !== undefined) spawnSync('dpkg', ['--purge', 'puzzled'])
  })

  check('starts the daemon, which says that it is ready', () => {
    const state = run(
      'systemctl',
      'show',
      '-p',
      'ActiveState,SubState,NRestarts',
      '--value',
      'puzzled.service',
    )
    expect(state.trim().split('\n').sort()).toEqual(['0', 'active', 'running'])
    expect(run('systemctl', 'is-enabled', 'puzzled-cleanup.timer').trim()).toBe('enabled')
  })

  check('puts the name on the bus, which its own client reaches', () => {
    expect(run('busctl', '--system', 'list', '--no-legend')).toMatch(/^org\.puzzled1\s+\d+ node/m)
    expect(run('puzzlectl', 'ls', '--json')).toContain('[')
  })

  check('runs an agent under the hardened unit, from fork to commit', () => {
    const base = run('mktemp', '-d', '-p', '/data/tmp').trim()
    const script = 'echo from the branch > file'
    const done = spawnSync('puzzlectl', ['run', '--', 'sh', '-c', script], { cwd: base, encoding: 'utf8' })
    expect({ status: done.status, errors: done.stderr }).toMatchObject({ status: 0 })
    expect(run('cat', `${base}/file`)).toBe('from the branch\n')
    run('rm', '-r', base)
  })

  check('has the manual pages', () => {
    // The image leaves manuals out of every installation, so the package itself is looked at.
    const listed = run('dpkg-deb', '--contents', `${folder}/${deb}`)
    for (const page of ['man1/puzzlectl.1', 'man5/puzzle-profile.5', 'man5/puzzled.yaml.5', 'man8/puzzled.8'])
      expect(listed).toContain(`./usr/share/man/${page}.gz`)
  })

  check('does not take what the manager hands to every other service', () => {
    const planted = [
      'NODE_OPTIONS=--require=/nowhere/evil.js',
      'NODE_PATH=/nowhere',
      'LD_PRELOAD=/nowhere/evil.so',
    ]
    const names = planted.map((entry) => entry.split('=')[0])
    run('systemctl', 'set-environment', ...planted)
    try {
      // The control: an ordinary unit gets them.
      const other = run('systemd-run', '--quiet', '--wait', '--pipe', '--collect', '/usr/bin/env')
      for (const entry of planted) expect(other).toContain(entry)
      run('systemctl', 'restart', 'puzzled.service')
      const pid = run('systemctl', 'show', '-p', 'MainPID', '--value', 'puzzled.service').trim()
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      expect(environment.filter((entry) => names.includes(entry.split('=')[0]))).toEqual([])
    } finally {
      run('systemctl', 'unset-environment', ...names.map(String))
    }
  })

  check('leaves with everything but the store', () => {
    dpkg('--remove', 'puzzled')
    expect(existsSync('/usr/bin/puzzled')).toBe(false)
    expect(run('systemctl', '--failed', '--no-legend')).toBe('')
    expect(existsSync('/var/lib/puzzled')).toBe(true)
  })
})
