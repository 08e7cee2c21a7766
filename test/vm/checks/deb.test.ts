import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
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
    const script = 'echo from the branch > file; cat'
    // Files of the caller are copied by a process beside the daemon, under the same unit.
    const redirected = `echo by the caller > in; puzzlectl run -- sh -c '${script}' < in > out`
    const done = spawnSync('sh', ['-c', redirected], { cwd: base, encoding: 'utf8' })
    expect({ status: done.status, errors: done.stderr }).toMatchObject({ status: 0 })
    expect(run('cat', `${base}/file`, `${base}/out`)).toBe('from the branch\nby the caller\n')
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

  describe('over itself', () => {
    const base = '/data/tmp/upgrade'
    const puzzlectl = (...args: string[]) =>
      spawnSync('puzzlectl', args, { cwd: base, encoding: 'utf8' }) as { status: number; stdout: string }
    const states = (): Record<string, string> =>
      Object.fromEntries(
        (JSON.parse(puzzlectl('ls', '--json').stdout) as { name: string; state: string }[]).map(
          ({ name, state }) => [name, state],
        ),
      )
    const scopes = (): string => run('systemctl', 'list-units', '--no-legend', 'puzzle-*.scope').trim()

    check('keeps what is held, ends what runs with its writes kept, and the service runs on', async () => {
      run('mkdir', base)
      puzzlectl('run', '--then', 'hold', '--name', 'waits', '--', 'sh', '-c', 'echo held > held')
      puzzlectl('run', '--detach', '--name', 'works', '--', 'sh', '-c', 'echo half > half; exec sleep 1000')
      await expect
        .poll(() => puzzlectl('diff', 'works', '--name-only').stdout, { timeout: 60_000 })
        .toBe('half\n')
      expect(states()).toMatchObject({ waits: 'held', works: 'running' })
      expect(scopes()).not.toBe('')
      const pid = (): string => run('systemctl', 'show', '-p', 'MainPID', '--value', 'puzzled.service').trim()
      const before = pid()
      writeFileSync('/etc/puzzled/puzzled.yaml', '# of the administrator\n')
      dpkg('--install', `${folder}/${deb}`)
      expect(pid()).not.toBe(before)
      expect(readFileSync('/etc/puzzled/puzzled.yaml', 'utf8')).toBe('# of the administrator\n')
      expect(states()).toMatchObject({ waits: 'held', works: 'stopped' })
      expect(scopes()).toBe('')
      expect(puzzlectl('approve', 'waits').status).toBe(0)
      expect(readFileSync(`${base}/held`, 'utf8')).toBe('held\n')
      // Whose agent did not come to its end is judged when somebody asks for it, and held for a person.
      puzzlectl('commit', 'works')
      expect(states()).toMatchObject({ works: 'held' })
      expect(puzzlectl('approve', 'works').status).toBe(0)
      expect(readFileSync(`${base}/half`, 'utf8')).toBe('half\n')
      run('rm', '-r', base)
    })
  })

  check('leaves with everything but the store', () => {
    const files = run('dpkg', '--listfiles', 'puzzled').trim().split('\n')
    const ours = files.filter((path) => path.includes('puzzle'))
    expect(ours.length).toBeGreaterThan(20)
    dpkg('--remove', 'puzzled')
    expect(ours.filter((path) => existsSync(path))).toEqual([])
    expect(run('systemctl', '--failed', '--no-legend')).toBe('')
    expect(run('systemctl', 'list-units', '--all', '--no-legend', 'puzzle*')).toBe('')
    expect(run('busctl', '--system', 'list', '--no-legend')).not.toContain('org.puzzled1')
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain('puzzled/branches')
    expect(spawnSync('pgrep', ['-f', '/usr/bin/puzzled']).status).toBe(1)
    expect(readdirSync('/var/lib/puzzled/branches').length).toBeGreaterThan(0)
  })

  check('purged, leaves the store, which it names, and the groups of people', () => {
    const said = dpkg('--purge', 'puzzled')
    expect(said).toContain('/var/lib/puzzled is kept')
    expect(existsSync('/var/cache/puzzled')).toBe(false)
    expect(existsSync('/var/lib/puzzled/audit')).toBe(true)
    expect(spawnSync('dpkg-query', ['-s', 'puzzled']).status).toBe(1)
  })
})
