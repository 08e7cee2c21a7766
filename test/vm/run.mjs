// The VM tier. Everything that a test host usually cannot show: systemd as PID 1, the system bus, cgroup v2 with
// controllers, XFS project quota, BPF LSM, SELinux.
//   npm run test:vm                  the root, e2e and vm tiers inside; the last line is the totals
//   npm run test:vm -- --core        of them what only a VM can show, for continuous integration
//   npm run test:vm -- 'COMMAND'     COMMAND as root inside, in the project; its output and exit status
//   npm run test:vm -- --power-cut N  N rounds of work that is cut off, on one disk
//   npm run vm:shell                 a root shell on this terminal; leave it with exit
//   options: --enforcing  --kernel 6.1  --limit SECONDS (of each machine; 1500, and 3600 for each tier of the whole suite)
// Nothing that happens inside is kept, and there is no network. Exit 124: out of time, 125: the machine died.
import { mkdtempSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseTotals } from '../../tools/totals.mjs'
import { buildImage, buildPackage, projectDisk } from './disks.mjs'
import { Machine } from './machine.mjs'
import { powerCuts } from './power-cut.mjs'

/** What this tier is for must not be skipped in it. */
const suite = (tiers, files = []) =>
  ['PUZZLED_MUST_RUN=vm', 'node', 'tools/test.mjs', ...tiers, ...files].join(' ')

/** A machine for each tier: one that dies or hangs takes no more with it. */
const WHOLE = [suite(['vm']), suite(['e2e']), suite(['root'])]

/**
 * What only the VM can show, and one way through everything: an emulated machine is ten times slower, so continuous
 * integration runs these, and a release the whole suite.
 */
const CORE_FILES = [
  'test/vm/',
  'test/root/quota',
  'test/root/overlay',
  'test/root/launch.test',
  'test/root/exec.test',
  'test/root/features',
  'test/root/journald',
  'test/root/commit.test',
  'test/root/budget-kinds',
  'test/e2e/doctor',
  'test/e2e/run',
]
const CORE = [suite(['root', 'e2e', 'vm'], CORE_FILES)]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shell: { type: 'boolean', default: false },
    core: { type: 'boolean', default: false },
    enforcing: { type: 'boolean', default: false },
    kernel: { type: 'string', default: '6.12' },
    limit: { type: 'string' },
    'power-cut': { type: 'string' },
  },
})
const cache =
  process.env.PUZZLED_VM_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'puzzled-vm')

buildImage(cache, values.kernel)
const dir = mkdtempSync(join(cache, 'job-'))
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))
process.on('exit', () => rmSync(dir, { recursive: true, force: true }))

const isSuite = positionals.length === 0 && !values.shell && values['power-cut'] === undefined
if (isSuite) buildPackage()
const options = { cache, kernel: values.kernel, project: projectDisk(dir), enforcing: values.enforcing }
if (values['power-cut'] !== undefined)
  process.exitCode = await powerCuts(options, dir, Number(values['power-cut']))
else if (!isSuite) process.exitCode = await runJob(positionals.join(' '))
else process.exitCode = await runSuite(values.core ? CORE : WHOLE)

/** Runs the jobs one after the other, each in a new machine, and ends with the totals of all of them. */
async function runSuite(jobs) {
  const sum = { passed: 0, failed: 0, skipped: 0 }
  let code = 0
  for (const job of jobs) {
    let tail = ''
    const status = await runJob(job, (chunk) => {
      tail = `${tail}${chunk}`.slice(-4000)
    })
    // A run that was to end with totals counts as failed without them, whatever became of the machine.
    const totals = parseTotals(tail) ?? { passed: 0, failed: 1, skipped: 0 }
    if (status !== 0 && totals.failed === 0) totals.failed = 1
    for (const key of Object.keys(sum)) sum[key] += totals[key]
    if (status !== 0 || totals.failed > 0) code = 1
  }
  console.log(`\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
  return code
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
    limit: values.shell ? 86_400 : Number(values.limit ?? (isSuite && !values.core ? 3600 : 1500)),
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
