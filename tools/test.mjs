// `npm test`: everything that this machine can run, in one command, on a fresh Debian with only Node and npm.
//   npm test [-- TIER... FILE...]   the named tiers only, and of them only the files whose path begins so (unit crash root escape e2e; vm only inside the VM)
//   PUZZLED_MUST_RUN=1|TIER,TIER    a skip in these tiers is a failure
//   PUZZLED_TEST_AGAIN=1            files of a few failed tests are run once more, alone (tools/unsteady.mjs)
// The last line is `N passed, N failed, N skipped`. The VM tier is a command of its own: `npm run test:vm`.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installMissing } from './debian-packages.mjs'
import { runWhereOrphansEnd } from './orphans.mjs'
import { testPlace } from './test-place.mjs'
import { filesToRepeat, withRepeated } from './unsteady.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
runWhereOrphansEnd()
// Tests make files for other users; what they are refused must not depend on who started them.
process.umask(0o022)
const TIERS = {
  unit: { folders: ['daemon', 'ctl', 'test'] },
  crash: { folders: ['test/crash'] },
  root: { folders: ['test/root'], rooms: true },
  escape: { folders: ['test/escape'], rooms: true },
  e2e: { folders: ['test/e2e'], rooms: true },
  vm: { folders: ['test/vm'], only: 'PUZZLED_VM' },
}

/** Why this machine cannot give test files rooms of their own, found by making one. */
function noRooms() {
  if (process.geteuid() !== 0) return 'needs root'
  const tried = spawnSync('unshare', ['--mount', '--net', '--propagation', 'private', 'true'], {
    encoding: 'utf8',
  })
  return tried.status === 0
    ? undefined
    : `needs new mount and network namespaces: ${tried.stderr || tried.error}`
}

const hasTests = (folder) =>
  existsSync(root + folder) &&
  readdirSync(root + folder, { recursive: true }).some((file) => file.endsWith('.test.ts'))

/** Splits the tiers into those that run and lines for those that cannot. */
function planTiers(names) {
  const reason = noRooms()
  const run = []
  const skipped = []
  for (const name of names) {
    const { folders, rooms, only } = TIERS[name]
    if (!folders.some(hasTests)) continue
    if (only !== undefined && process.env[only] === undefined) {
      skipped.push({
        tier: name,
        name: 'the whole tier',
        state: 'skipped',
        reason: 'needs the VM: npm run test:vm',
      })
      continue
    }
    if (rooms && reason !== undefined)
      skipped.push({ tier: name, name: `the whole tier`, state: 'skipped', reason })
    else run.push(name)
  }
  return { run, skipped }
}

/** Unit tests share nothing and use both processors; the others change the machine, and one file follows the other. */
function runVitest(tiers, files) {
  const groups = [tiers.filter((name) => name === 'unit'), tiers.filter((name) => name !== 'unit')]
  const runs = groups.filter((group) => group.length > 0).map((group) => runGroup(group, files))
  return {
    status: runs.find(({ status }) => status !== 0)?.status ?? 0,
    results: runs.flatMap(({ results }) => results),
  }
}

function runGroup(tiers, files) {
  const place = testPlace(root)
  const dir = mkdtempSync(join(place.env.TMPDIR ?? tmpdir(), 'puzzled-test-'))
  const results = join(dir, 'results.jsonl')
  const projects = tiers.flatMap((name) => ['--project', name])
  const reporters = ['--reporter=default', '--reporter=./test/tier/reporter.ts']
  const workers = tiers.includes('unit') ? ['--maxWorkers=2'] : []
  const run = spawnSync(
    place.node,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--passWithNoTests',
      ...projects,
      ...reporters,
      ...workers,
      ...files,
    ],
    {
      cwd: place.root,
      stdio: 'inherit',
      env: {
        ...process.env,
        ...place.env,
        PUZZLED_TEST_RESULTS: results,
        ...(process.stdout.isTTY ? {} : { NO_COLOR: '1', FORCE_COLOR: undefined }),
      },
    },
  )
  const lines = existsSync(results) ? readFileSync(results, 'utf8').trim().split('\n').filter(Boolean) : []
  rmSync(dir, { recursive: true, force: true })
  place.remove()
  return { status: run.status, results: lines.map((line) => JSON.parse(line)) }
}

/** The same, and where it was asked for what failed once more. */
function runSteadily(tiers, files) {
  const first = runVitest(tiers, files)
  const repeat = process.env.PUZZLED_TEST_AGAIN === '1' ? filesToRepeat(first.results) : []
  if (repeat.length === 0) return first
  console.log(`Once more, alone: ${repeat.map(({ file }) => file).join(', ')}`)
  const second = runVitest(
    [...new Set(repeat.map(({ tier }) => tier))],
    repeat.map(({ file }) => file),
  )
  const { results, unsteady } = withRepeated(first.results, second.results)
  for (const line of unsteady)
    console.log(
      `unsteady – ${line.tier}: ${line.file} ${line.name}: it failed, and passed when it ran again\n  ${line.reason.split('\n')[0]}`,
    )
  return { status: second.status, results }
}

/** Skips, one line per tier and reason: many tests usually miss the same thing. */
function printSkips(skipped) {
  const groups = new Map()
  for (const line of skipped) {
    const key = `${line.tier}: ${line.reason}`
    groups.set(key, [...(groups.get(key) ?? []), line])
  }
  for (const [reason, lines] of groups) {
    const names = lines.map((line) => line.name)
    const shown = names.length > 3 ? [...names.slice(0, 3), `and ${names.length - 3} more`] : names
    console.log(`skipped (not verified here) – ${reason}: ${shown.join('; ')}`)
  }
}

const files = process.argv.slice(2).filter((word) => word.startsWith('test/'))
const wanted = process.argv.slice(2).filter((word) => !files.includes(word))
// A name that no test has any more would pass by running nothing.
const known = readdirSync(`${root}test`, { recursive: true }).map((file) => `test/${file}`)
const strays = files.filter(
  (word) => !known.some((file) => file.startsWith(word) && file.endsWith('.test.ts')),
)
if (strays.length > 0) {
  console.error(`No test begins with ${strays.join(', ')}`)
  process.exit(2)
}
const unknown = wanted.filter((name) => !(name in TIERS))
if (unknown.length > 0) {
  console.error(`Unknown tier ${unknown.join(', ')}; there are ${Object.keys(TIERS).join(', ')}`)
  process.exit(2)
}
const tiers = wanted.length > 0 ? wanted : Object.keys(TIERS).filter((name) => TIERS[name].only === undefined)
const { packages } = JSON.parse(readFileSync(`${root}test/packages.json`, 'utf8'))
// The guest of the VM tier has what its image has, and no network.
if (process.env.PUZZLED_VM === undefined)
  installMissing(packages.filter((entry) => entry.needs.some((name) => tiers.includes(name))))
const { run, skipped } = planTiers(tiers)
const { status, results } = run.length > 0 ? runSteadily(run, files) : { status: 0, results: [] }
const all = [...results, ...skipped]
const count = (state) => all.filter((line) => line.state === state).length

for (const line of all.filter((entry) => entry.state === 'failed'))
  console.log(`failed – ${line.tier}: ${line.file} ${line.name}\n  ${line.reason.split('\n')[0]}`)
printSkips(all.filter((line) => line.state === 'skipped'))
const must = (process.env.PUZZLED_MUST_RUN ?? '').split(',')
const demanded = all.filter(
  (line) => line.state === 'skipped' && (must.includes('1') || must.includes(line.tier)),
)
if (demanded.length > 0) console.log(`${demanded.length} skipped tests had to run (PUZZLED_MUST_RUN)`)
const failed = count('failed') + demanded.length
// A runner that fails without naming a test has failed all the same.
const silent = status !== 0 && count('failed') === 0 ? 1 : 0
if (silent) console.log(`The test runner ended with status ${status}`)
process.exitCode = failed + silent > 0 ? 1 : 0
console.log(
  `${count('passed')} passed, ${failed + silent} failed, ${count('skipped') - demanded.length} skipped`,
)
