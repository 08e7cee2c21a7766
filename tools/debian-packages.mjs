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
  const apt = (args) =>
    spawnSync('apt-get', args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    })
  const install = ['install', '-y', '-qq', '--no-install-recommends', ...names]
  if (apt(['update', '-qq']).status !== 0 || apt(install).status !== 0)
    console.log('Some packages could not be installed; tests that need them will be skipped')
}
