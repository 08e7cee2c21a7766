// The VM tier. Everything that a test host usually cannot show: systemd as PID 1, the system bus, cgroup v2 with
// controllers, XFS project quota, BPF LSM, SELinux.
//   npm run test:vm                  the vm, e2e, root and escape tiers inside; the last line is the totals
//   npm run test:vm -- --core        of them what only a VM can show, for continuous integration
//   npm run test:vm -- 'COMMAND'     COMMAND as root inside, in the project; its output and exit status
//   npm run test:vm -- --power-cut N [--program]  N rounds of commits that are cut off, on one disk; of the whole program
//   npm run test:vm -- --machine-loss  branches in every state while the machine is lost, and after it came up
//   npm run vm:shell                 a root shell on this terminal; leave it with exit
//   options: --enforcing  --kernel 6.1  --limit SECONDS (of each machine; 2400)  --part N/M (of the machines of the whole run)
// Nothing that happens inside is kept, and there is no network. Exit 124: out of time, 125: the machine died.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseTotals } from '../../tools/totals.mjs'
import { buildImage, buildPackage, projectDisk, repository } from './disks.mjs'
import { Machine, STATUS } from './machine.mjs'
import { machineLoss } from './machine-loss.mjs'
import { powerCuts } from './power-cut.mjs'

/** Of each machine. The longest share takes a quarter of an hour on two quiet processors; a busy host takes twice that. */
const SECONDS = 2400

/**
 * Repetitions that find what happens one time in a thousand belong on a fast machine; here it is the surroundings that
 * differ, and each of them costs twenty times as much.
 */
const FEWER = {
  PUZZLED_RACE_ROUNDS: 300,
  PUZZLED_WRITER_ROUNDS: 3,
  PUZZLED_MODEL_RUNS: 20,
  PUZZLED_ESCAPE_KILLS: 3,
  PUZZLED_ESCAPE_LAUNCHES: 10,
  PUZZLED_ESCAPE_CYCLES: 10,
  PUZZLED_ESCAPE_ROUNDS: 300,
  PUZZLED_ESCAPE_DEPTH: 60,
}

/** What this tier is for must not be skipped in it. */
const suite = (tier, files = []) => ({
  name: tier,
  job: [
    ...Object.entries(FEWER).map(([name, value]) => `${name}=${value}`),
    ...['PUZZLED_MUST_RUN=vm', 'node', 'tools/test.mjs', tier, ...files],
  ].join(' '),
})

/** The files of a tier, dealt out to this many machines. */
function dealt(tier, machines) {
  const files = readdirSync(join(repository, 'test', tier)).filter((name) => name.endsWith('.test.ts'))
  return Array.from({ length: machines }, (_, which) =>
    suite(
      tier,
      files.filter((_name, index) => index % machines === which).map((name) => `test/${tier}/${name}`),
    ),
  )
}

/** A machine that dies or hangs takes no more with it than its share. */
const WHOLE = () => [suite('vm'), ...dealt('e2e', 6), ...dealt('root', 6), ...dealt('escape', 3)]

/**
 * What only the VM can show, and one way through everything: an emulated machine is ten to twenty times slower, so
 * continuous integration runs these, and a release the whole suite. What matters most comes first.
 */
const CORE = () => [
  suite('vm'),
  suite('root', [
    'test/root/quota',
    'test/root/overlay',
    'test/root/launch.test',
    'test/root/exec.test',
    'test/root/features',
    'test/root/journald',
    'test/root/commit.test',
    'test/root/budget-kinds',
  ]),
  suite('e2e', ['test/e2e/doctor', 'test/e2e/run']),
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shell: { type: 'boolean', default: false },
    core: { type: 'boolean', default: false },
    enforcing: { type: 'boolean', default: false },
    kernel: { type: 'string', default: '6.12' },
    limit: { type: 'string' },
    part: { type: 'string' },
    'power-cut': { type: 'string' },
    'machine-loss': { type: 'boolean', default: false },
    program: { type: 'boolean', default: false },
  },
})
const cache =
  process.env.PUZZLED_VM_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'puzzled-vm')

buildImage(cache, values.kernel)
const dir = mkdtempSync(join(cache, 'job-'))
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))
process.on('exit', () => rmSync(dir, { recursive: true, force: true }))

const isSuite =
  positionals.length === 0 && !values.shell && !values['machine-loss'] && values['power-cut'] === undefined
if (isSuite) buildPackage()
const options = { cache, kernel: values.kernel, project: projectDisk(dir), enforcing: values.enforcing }
const guest = values.program ? 'power-cut.mjs' : 'power-cut-commits.mjs'
if (values['power-cut'] !== undefined)
  process.exitCode = await powerCuts(options, dir, Number(values['power-cut']), guest)
else if (values['machine-loss']) {
  const limit = Number(values.limit ?? 900)
  process.exitCode = (await machineLoss({ ...options, limit }, dir)).failed === 0 ? 0 : 1
} else if (!isSuite) process.exitCode = await runJob(positionals.join(' '))
else process.exitCode = await runSuite(values.core ? CORE() : chosen(WHOLE()))

/** `--part 2/5`: every fifth machine, from the second. A whole run may be spread over hosts or nights. */
function chosen(jobs) {
  const [, part, of] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(values.part ?? '1/1') ?? []
  if (part === undefined || Number(part) > Number(of)) throw new Error('--part is N/M, from 1/M to M/M')
  return jobs.filter((_, index) => index % Number(of) === Number(part) - 1)
}

/** Runs the jobs one after the other, each in a new machine, and ends with the totals of all of them. */
async function runSuite(jobs) {
  const sum = { passed: 0, failed: 0, skipped: 0 }
  const summary = []
  for (const { name, job } of jobs) {
    const began = performance.now()
    let tail = ''
    const status = await runJob(job, (chunk) => {
      tail = `${tail}${chunk}`.slice(-4000)
    })
    // A run that was to end with totals counts as failed without them, whatever became of the machine.
    const totals = parseTotals(tail) ?? { passed: 0, failed: 1, skipped: 0 }
    if (status !== 0 && totals.failed === 0) totals.failed = 1
    for (const key of Object.keys(sum)) sum[key] += totals[key]
    const seconds = Math.round((performance.now() - began) / 1000)
    const how =
      status === STATUS.timeout ? ', out of time' : status === STATUS.died ? ', the machine died' : ''
    summary.push(
      `machine ${summary.length + 1}, ${name} (${seconds} s${how}): ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`,
    )
    console.log(summary.at(-1))
  }
  console.log(`\n${summary.join('\n')}`)
  console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
  return sum.failed > 0 ? 1 : 0
}

/** An emulator that aborts while the guest boots has shown nothing about the project; it is started again. */
async function runJob(job, listen = () => undefined) {
  for (let attempt = 1; ; attempt++) {
    const { code, report, heard } = await tryJob(job, listen)
    if (report !== '') console.error(report)
    if (report === '' || heard || attempt === 3) return code
    console.error('The machine died before the job began; starting it again')
  }
}

async function tryJob(job, listen) {
  let heard = false
  const machine = new Machine({
    ...options,
    data: join(cache, 'data.xfs'),
    job,
    shell: values.shell,
    limit: values.shell ? 86_400 : Number(values.limit ?? SECONDS),
    stdout: (chunk) => {
      heard = true
      listen(chunk)
      process.stdout.write(chunk)
    },
    stderr: (chunk) => process.stderr.write(chunk),
  })
  process.on('exit', () => machine.cut())
  return { ...(await machine.run()), heard }
}
