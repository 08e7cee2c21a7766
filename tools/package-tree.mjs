// What an installation consists of: shared by the npm check and the Debian package.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('..', import.meta.url))

/** Runs a program; throws what it said when it fails. */
export function run(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 << 20, ...options })
  if (done.status === 0) return done.stdout
  throw new Error(`${command} ${args.join(' ')}: ${done.stderr || done.stdout || done.error}`)
}

/** Builds and packs as `npm publish` would; answers the tarball's path. */
export function pack(into) {
  for (const tool of ['build.mjs', 'build-types.mjs'])
    run(process.execPath, [`tools/${tool}`], { cwd: repository })
  const [{ filename }] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', into], { cwd: repository }),
  )
  return join(into, filename)
}

/** Installs the tarball with its one dependency into a prefix, as `npm install -g` does. */
export function installInto(prefix, tarball) {
  mkdirSync(prefix, { recursive: true })
  run('npm', ['install', '--global', ...prefixed(prefix), '--no-audit', '--no-fund', tarball])
}

/** npm looks for the machine's settings (its certificates, its registry) below the prefix: they stay the machine's. */
export function prefixed(prefix) {
  const machine = run('npm', ['config', 'get', 'globalconfig']).trim()
  return ['--prefix', prefix, '--globalconfig', machine]
}
