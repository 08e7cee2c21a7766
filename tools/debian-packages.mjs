// Installs Debian packages that are not there yet: as root, saying so; otherwise it says what is missing.
import { spawnSync } from 'node:child_process'

const isInstalled = (name) => {
  const query = spawnSync('dpkg-query', ['-s', name], { encoding: 'utf8' })
  return query.status === 0 && query.stdout.includes('Status: install ok installed')
}

/** `packages` is a list of {name, needs: [tier]}. Never throws: a test that misses something says so itself. */
export function installMissing(packages) {
  if (spawnSync('dpkg-query', ['--version']).status !== 0) {
    console.log('Not a Debian system: tests whose tools are missing will be skipped')
    return
  }
  const missing = packages.filter((entry) => !isInstalled(entry.name))
  if (missing.length === 0) return
  const names = missing.map((entry) => entry.name)
  if (process.geteuid() !== 0) {
    const tiers = [...new Set(missing.flatMap((entry) => entry.needs))]
    console.log(`Not installed: ${names.join(' ')} (used by ${tiers.join(', ')}); as root this installs them`)
    return
  }
  console.log(`Installing from Debian's packages, for the tests: ${names.join(' ')}`)
  // The lists of one source may fail while the others are good; what can be installed then decides.
  apt(['update', '-qq'])
  if (install(names)) return
  // One name that this release does not have must not take the others along.
  const failed = names.filter((name) => !install([name]))
  if (failed.length > 0)
    console.log(`Could not be installed, so tests that need them will be skipped: ${failed.join(' ')}`)
}

const install = (names) => apt(['install', '-y', '-qq', '--no-install-recommends', ...names])

/** A machine that has just started is often busy with upgrades of its own: their locks are waited for. */
function apt(args) {
  const options = ['DPkg::Lock::Timeout=300', 'Acquire::Retries=3', 'Acquire::http::Timeout=30']
  const words = [...options.flatMap((option) => ['-o', option]), ...args]
  for (let attempt = 1; ; attempt++) {
    const done = spawnSync('apt-get', words, {
      stdio: ['ignore', 'ignore', 'pipe'],
      encoding: 'utf8',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
      timeout: 600_000,
    })
    process.stderr.write(done.stderr ?? '')
    if (done.status === 0) return true
    if (!/could not get lock/i.test(done.stderr ?? '') || attempt === 30) return false
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000)
  }
}
