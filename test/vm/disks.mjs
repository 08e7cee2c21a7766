// The disks that a run hands to the machine: the project as it is built here, and fresh data disks.
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('../../', import.meta.url))

/** Packages that are only needed to check and build, which the guest does not do. They are half of the bytes. */
const OUTSIDE_ONLY = /node_modules\/(@biomejs|@typescript|typescript|\.run-ts)/

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 << 20, ...options })
  if (done.status !== 0) throw new Error(`${command} ${args[0]} failed: ${done.stderr ?? done.error}`)
  return done.stdout
}

/** From nothing it takes some minutes; a mirror that does not answer must not hold a run for ever. */
const BUILD_MS = 30 * 60_000

/** Builds the image of the VM where it is not cached; needs root the first time. */
export async function buildImage(cache, kernel) {
  mkdirSync(cache, { recursive: true })
  const env = { ...process.env, CACHE: cache, KERNEL: kernel }
  // A session of its own, so that all of it can be ended at once.
  const builder = spawn('bash', [join(repository, 'test/vm/image/build.sh')], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
    env,
  })
  const end = () => process.kill(-builder.pid, 'SIGTERM')
  const leave = () => process.exit(130)
  const timer = setTimeout(end, BUILD_MS)
  process.on('exit', end).on('SIGINT', leave).on('SIGTERM', leave).on('SIGHUP', leave)
  const how = await new Promise((resolve) => {
    builder.once('error', resolve)
    builder.once('close', (code, signal) => resolve(code ?? signal))
  })
  clearTimeout(timer)
  process.off('exit', end).off('SIGINT', leave).off('SIGTERM', leave).off('SIGHUP', leave)
  if (how !== 0) throw new Error(`Cannot build the VM image: ${how}`)
}

/** The Debian package, which a check installs inside. */
export const buildPackage = () => run(process.execPath, ['tools/package-deb.mjs'], { cwd: repository })

/** An ext4 image of what git knows of, the build and the packages. Removed with `dir`. */
export function projectDisk(dir) {
  run(process.execPath, ['tools/build.mjs'], { cwd: repository })
  const stage = mkdtempSync(join(dir, 'project-'))
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const files = run('git', ['-c', 'safe.directory=*', ...listing], { cwd: repository })
  for (const file of files.split('\0')) {
    if (file === '' || !existsSync(repository + file)) continue
    mkdirSync(join(stage, dirname(file)), { recursive: true })
    cpSync(repository + file, join(stage, file), { verbatimSymlinks: true })
  }
  for (const folder of ['dist', 'dist-packages', 'node_modules'])
    if (existsSync(repository + folder))
      cpSync(repository + folder, join(stage, folder), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !OUTSIDE_ONLY.test(path),
      })
  const image = join(dir, 'project.img')
  writeFileSync(image, '')
  truncateSync(image, 2 * 2 ** 30)
  const options = ['-O', '^has_journal,^metadata_csum,^resize_inode', '-E', 'lazy_itable_init=1,nodiscard']
  run('mke2fs', ['-q', '-F', '-t', 'ext4', ...options, '-i', '32768', '-m', '0', '-d', stage, image])
  rmSync(stage, { recursive: true, force: true })
  return image
}

/** A copy of the empty XFS disk whose content survives the machine. */
export function dataDisk(dir, cache) {
  const image = join(dir, 'data.img')
  run('cp', ['--reflink=auto', '--sparse=always', join(cache, 'data.xfs'), image])
  return image
}
