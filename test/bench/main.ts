import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { packageRoot } from '../../daemon/lib/assets.ts'
import { compare, comparisonText } from './compare.ts'
import { DIFF_ALONE, tellDiffAlone } from './diff-alone.ts'
import { documentOf } from './document.ts'
import { type AreaReport, type BenchArea, type Extent, runArea } from './harness.ts'
import { machineNow } from './machine.ts'
import type { BenchReport } from './report.ts'

type Load = () => Promise<{ area: BenchArea }>

/** Every area, in the order in which all of them run: what is disturbed by heat and full caches comes first. */
const AREAS: Readonly<Record<string, readonly Load[]>> = {
  start: [() => import('./areas/start.ts'), () => import('./areas/sandbox.ts')],
  cli: [() => import('./areas/cli.ts')],
  gate: [() => import('./areas/gate.ts')],
  proxy: [() => import('./areas/proxy.ts')],
  branch: [() => import('./areas/branch.ts'), () => import('./areas/commit.ts')],
  scale: [() => import('./areas/scale.ts')],
  audit: [() => import('./areas/audit.ts')],
  lsm: [() => import('./areas/lsm.ts')],
  // By name only: one large file, many times.
  large: [() => import('./areas/large.ts')],
}

const ALL = Object.keys(AREAS).filter((name) => name !== 'large')

/** The run that `docs/benchmarks.md` shows, to compare with. */
const REFERENCE = 'test/bench/kept/reference.json'
/** A run in the machine of `npm run test:vm`, for what needs its kernel. */
const EMULATED = 'test/bench/kept/emulated.json'

const USAGE = `Usage: npm run bench -- [--all | AREA… | --from FILE] [--full] [--compare FILE] [--write-docs]
--from measures nothing and takes the run in FILE. --full measures a million audit records instead of 200,000. --write-docs writes docs/benchmarks.md and keeps the run in ${REFERENCE}.
Areas: ${Object.keys(AREAS).join(', ')}. Status: 0, 1 if an area failed or --compare found something worse, 2 if this line is wrong.`

/** One area is one process's worth of work, and two of them may share a name: their results are joined. */
async function report(name: string, extent: Extent): Promise<AreaReport> {
  const parts: AreaReport[] = []
  for (const load of AREAS[name] ?? []) parts.push(await runArea((await load()).area, extent))
  return {
    missing: parts.find(({ missing }) => missing !== null)?.missing ?? null,
    failed: parts.find(({ failed }) => failed !== null)?.failed ?? null,
    results: parts.flatMap(({ results }) => results),
    facts: parts.flatMap(({ facts }) => facts),
    peers: parts.flatMap(({ peers }) => peers),
    seconds: parts.reduce((sum, { seconds }) => sum + seconds, 0),
  }
}

async function runAreas(names: readonly string[], extent: Extent): Promise<BenchReport> {
  const load = loadavg()[0] ?? 0
  const areas: Record<string, AreaReport> = {}
  for (const name of names) {
    areas[name] = await report(name, extent)
    console.log(`${name}: ${areas[name].seconds} s\n`)
  }
  return { version: 1, at: new Date().toISOString(), machine: machineNow(load), areas }
}

function keep(done: BenchReport): string {
  const folder = join(packageRoot(), 'bench-results')
  mkdirSync(folder, { recursive: true })
  const names = Object.keys(done.areas)
  const name = names.length === ALL.length ? 'all' : names.join('-')
  const file = join(folder, `${done.at.replace(/[:.]/g, '-')}-${name}.json`)
  writeFileSync(file, `${JSON.stringify(done, null, 2)}\n`)
  return file
}

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      ...{ all: { type: 'boolean' }, full: { type: 'boolean' }, compare: { type: 'string' } },
      ...{ from: { type: 'string' }, 'write-docs': { type: 'boolean' } },
      // Asked for by the area that measures it.
      [DIFF_ALONE]: { type: 'string' },
    },
  })
  const alone = values[DIFF_ALONE]
  if (typeof alone === 'string') {
    await tellDiffAlone(alone)
    return 0
  }
  const wanted = values.all === true || positionals.length === 0 ? ALL : positionals
  const unknown = wanted.filter((name) => !(name in AREAS))
  if (unknown.length > 0) throw new TypeError(`No such area: ${unknown.join(', ')}`)
  // Read first: a wrong name must not be found out after a quarter of an hour.
  const before = values.compare === undefined ? null : readReport(values.compare)
  const done =
    values.from === undefined
      ? await runAreas(wanted, { full: values.full === true })
      : readReport(values.from)
  if (values.from === undefined) console.log(`Kept in ${keep(done)}`)
  if (values['write-docs'] === true) writeDocument(done)
  const worse = before !== null && tellDifferences(before, done)
  const failed = Object.entries(done.areas).filter(([, area]) => area.failed !== null)
  for (const [name, { failed: why }] of failed) console.error(`${name} failed: ${why}`)
  return worse || failed.length > 0 ? 1 : 0
}

function writeDocument(done: BenchReport): void {
  const emulated = join(packageRoot(), EMULATED)
  const elsewhere = existsSync(emulated) ? readReport(emulated) : null
  writeFileSync(join(packageRoot(), 'docs/benchmarks.md'), documentOf(done, elsewhere))
  mkdirSync(join(packageRoot(), REFERENCE, '..'), { recursive: true })
  writeFileSync(join(packageRoot(), REFERENCE), `${JSON.stringify(done, rounded, 1)}\n`)
}

/** Further digits are noise, and a file that is kept is read by people. */
const rounded = (_key: string, value: unknown): unknown =>
  typeof value === 'number' ? Number(value.toPrecision(4)) : value

/** Whether something is worse. */
function tellDifferences(before: BenchReport, done: BenchReport): boolean {
  const comparison = compare(before, done)
  console.log(comparisonText(comparison, before.at))
  return comparison.differences.some(({ verdict }) => verdict === 'worse')
}

/** A file that is none of these is a wrong argument. */
function readReport(path: string): BenchReport {
  const report = JSON.parse(readFileSync(path, 'utf8')) as Partial<BenchReport>
  if (report.version !== 1 || report.areas === undefined)
    throw new TypeError(`${path} is not a result of this program`)
  return report as BenchReport
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const isUsage = error instanceof TypeError || error instanceof SyntaxError
  if (!isUsage && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
  process.exitCode = 2
}
