// The VM tier. Everything that a test host usually cannot show: systemd as PID 1, the system bus, cgroup v2 with
// controllers, XFS project quota, BPF LSM, SELinux.
//   npm run test:vm                  the vm, e2e, root and escape tiers inside; the last line is the totals
//   npm run test:vm -- --core        of them what only a VM can show, for continuous integration
//   npm run test:vm -- test/FILE...  these files inside, by the beginning of their paths
//   npm run test:vm -- 'COMMAND'     COMMAND as root inside, in the project; its output and exit status
//   npm run test:vm -- --power-cut N [--program]  N rounds of commits that are cut off, on one disk; of the whole program
//   npm run test:vm -- --machine-loss  branches in every state while the machine is lost, and after it came up
//   npm run vm:shell                 a root shell on this terminal; leave it with exit
//   options: --enforcing  --kernel 6.1|newest  --limit SECONDS (of each machine; 2400)  --part N/M (of the machines of
//            the whole run, the most telling first)
// Nothing that happens inside is kept, and there is no network. Exit 124: out of time, 125: the machine died.
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseTotals } from '../../tools/totals.mjs'
import { buildImage, buildPackage, projectDisk } from './disks.mjs'
import { Machine, STATUS } from './machine.mjs'
import { machineLoss } from './machine-loss.mjs'
import { requireRoom, runFolder } from './place.mjs'
import { powerCuts } from './power-cut.mjs'
import { chosen, core, only, whole } from './suites.mjs'

/** Of each machine. The longest share takes a quarter of an hour on two quiet processors; a busy host takes twice that. */
const SECONDS = 2400

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shell: { type: 'boolean', default: false },
    core: { type: 'boolean', default: false },
    enforcing: { type: 'boolean', default: false },
    kernel: { type: 'string', default: '6.12' },
    limit: { type: 'string' },
    part: { type: 'string', default: '1/1' },
    'power-cut': { type: 'string' },
    'machine-loss': { type: 'boolean', default: false },
    program: { type: 'boolean', default: false },
  },
})
const cache =
  process.env.PUZZLED_VM_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'puzzled-vm')

const ownStart = values.shell || values['machine-loss'] || values['power-cut'] !== undefined
const jobs = ownStart ? undefined : jobsOf(positionals)
await buildImage(cache, values.kernel)
requireRoom(cache)
const dir = runFolder(cache)

if (jobs !== undefined) buildPackage()
const options = { cache, dir, kernel: values.kernel, project: projectDisk(dir), enforcing: values.enforcing }
const guest = values.program ? 'power-cut.mjs' : 'power-cut-commits.mjs'
if (values['power-cut'] !== undefined)
  process.exitCode = await powerCuts(options, dir, Number(values['power-cut']), guest)
else if (values['machine-loss']) {
  const limit = Number(values.limit ?? 900)
  process.exitCode = (await machineLoss({ ...options, limit }, dir)).failed === 0 ? 0 : 1
} else if (jobs !== undefined) process.exitCode = await runSuite(jobs)
else process.exitCode = await runJob(positionals.join(' '))

/** Undefined for a command, and for no command with a shell. */
function jobsOf(words) {
  if (words.length === 0) return values.core ? core() : chosen(whole(), values.part)
  return words.every((word) => word.startsWith('test/')) ? only(words) : undefined
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
  return { ...(await machine.run()), heard }
}
