// pure
import type { AreaReport, BenchResult } from './harness.ts'
import type { BenchReport, Machine } from './report.ts'
import { isMet, TARGETS, type Target } from './targets.ts'

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

/** `docs/benchmarks.md` from one run, and for what that machine cannot show from one elsewhere. */
export function documentOf(report: BenchReport, elsewhere: BenchReport | null = null): string {
  const { machine } = report
  const [before, after] = machine.load
  return `${[
    '# Benchmarks',
    `Written by \`npm run bench -- --all --write-docs\` on ${report.at.slice(0, 10)}; do not edit. The targets are those of the
design; nothing is tested against a clock.`,
    `Machine: ${machine.cpus} × ${machine.cpu}, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ${machine.distribution}, Node ${machine.node}, temporary files on
${machine.filesystem}; load ${before.toFixed(1)} at the beginning and ${after.toFixed(1)} at the end${busyText(machine)}. Candidates of a case run in turn, so a ratio means more
than a time. ± is half the distance between the quartiles.`,
    `Run them: \`npm run bench -- AREA…\` (${Object.keys(report.areas).join(', ')}; and large: one large file), \`--all\` for
all but the last. Each run is kept in \`bench-results/\`, this one in \`test/bench/kept/reference.json\`;
\`--compare FILE\` prints what became slower than its peers since that run and ends with status 1 if anything did (0 if nothing
did, 2 if the command line is wrong). What counts is a ratio that moved by more than 15 % and by more than the samples scattered.`,
    '## Targets',
    targetTable(report),
    ...missed(report),
    ...Object.entries(report.areas).flatMap(([name, area]) => [
      ...areaText(name, area),
      ...(area.missing === null ? [] : textFrom(elsewhere, name)),
    ]),
  ].join('\n\n')}\n`
}

/** More that wanted to run than there are processors: times are longer than they would be, ratios less so. */
const busyText = ({ load, cpus }: Machine): string =>
  Math.max(...load) > 1.5 * cpus
    ? ' (**busy with other work**: every time is longer than it would be, and a ratio to a peer that waits less is larger)'
    : ''

/** What the emulated machine measured of an area that this one cannot. */
function textFrom(elsewhere: BenchReport | null, name: string): string[] {
  const area = elsewhere?.areas[name]
  if (elsewhere === null || area === undefined || area.missing !== null) return []
  const { cpus, cpu, kernel, node } = elsewhere.machine
  const head = `Measured on ${elsewhere.at.slice(0, 10)} in the machine of \`npm run test:vm\`, which is **emulated in software**: only the ratios mean anything (${cpus} × ${cpu}, Linux ${kernel}, Node ${node}):`
  return [head, ...areaText(name, area).slice(1)]
}

function targetTable(report: BenchReport): string {
  const rows = TARGETS.map((target) => {
    const measured = target.measured(report)
    const wanted =
      target.limit === null ? 'none' : `${target.atLeast === true ? '≥' : '≤'} ${target.limit} ${target.unit}`
    if (measured === undefined) return [target.what, wanted, 'not measured here', '–']
    return [
      target.what,
      wanted,
      `${shown(measured)} ${target.unit}`,
      target.limit === null ? '–' : isMet(target, measured) ? 'met' : '**missed**',
    ]
  })
  return table(['figure', 'target', 'measured', ''], rows)
}

function missed(report: BenchReport): string[] {
  const rows = TARGETS.filter((target: Target) => {
    const measured = target.measured(report)
    return measured !== undefined && !isMet(target, measured)
  })
  if (rows.length === 0) return []
  const lines = rows.map(({ what, why }) => `- ${what}: ${why ?? 'not explained yet; profile it.'}`)
  return ['What stands in the way:', lines.join('\n')]
}

function areaText(name: string, { missing, failed, results, facts, peers }: AreaReport): string[] {
  const head = `## ${name}`
  const incomplete = [
    ...(missing === null ? [] : [`Not measured here: ${missing}.`]),
    ...(failed === null ? [] : [`**It failed**, and what is not here was not measured: ${failed}.`]),
  ]
  const absent = peers.map(({ peer, how }) => `- without ${peer}: ${how}`)
  const numbers = facts.map((fact) => [fact.name, `${shown(fact.value)} ${fact.unit}`])
  return [
    head,
    ...incomplete,
    ...(absent.length === 0 ? [] : [absent.join('\n')]),
    ...results.map(resultTable),
    ...(numbers.length === 0 ? [] : [table(['', 'value'], numbers)]),
  ]
}

function resultTable(result: BenchResult): string {
  const rows = Object.entries(result.candidates).map(([name, { median, p99, ratio, spread, rounds }]) => [
    ...[name, `${shown(median)} ms`, `${shown(p99)} ms`],
    ...[shown(ratio), `${(spread * 100).toFixed(0)} %`, String(rounds)],
  ])
  const goal = result.goal === null || result.goal === 'no target' ? '' : `; goal ${result.goal}`
  return `${result.case}${goal}:\n\n${table(['', 'p50', 'p99', `ratio to ${result.baseline}`, '±', 'runs'], rows)}`
}

/** Three digits say all that a benchmark knows. */
const shown = (value: number): string =>
  Number.isFinite(value) ? (value >= 100 ? value.toFixed(0) : value.toPrecision(3)) : '–'
