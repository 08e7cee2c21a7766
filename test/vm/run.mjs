// The VM tier. Everything that a test host usually cannot show: systemd as PID 1, the system bus, cgroup v2 with
// controllers, XFS project quota, BPF LSM, SELinux.
//   npm run test:vm                  the root, e2e and vm tiers inside; the last line is the totals
//   npm run test:vm -- --core        of them what only a VM can show, for continuous integration
//   npm run test:vm -- 'COMMAND'     COMMAND as root inside, in the project; its output and exit status
//   npm run test:vm -- --power-cut N  N rounds of work that is cut off, on one disk
//   npm run vm:shell                 a root shell on this terminal; leave it with exit
//   options: --enforcing  --kernel 6.1  --limit SECONDS
// Nothing that happens inside is kept, and there is no network. Exit 124: out of time, 125: the machine died.
import { mkdtempSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildImage, buildPackage, projectDisk } from './disks.mjs'
import { Machine } from './machine.mjs'
import { powerCuts } from './power-cut.mjs'

const SUITE = 'node tools/test.mjs root e2e vm'

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
const CORE = `${SUITE} ${CORE_FILES.join(' ')}`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shell: { type: 'boolean', default: false },
    core: { type: 'boolean', default: false },
    enforcing: { type: 'boolean', default: false },
    kernel: { type: 'string', default: '6.12' },
    limit: { type: 'string', default: '1500' },
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
else process.exitCode = await runJob()

/** An emulator that aborts while the guest boots has shown nothing about the project; it is started again. */
async function runJob() {
  for (let attempt = 1; ; attempt++) {
    const { code, report, heard } = await tryJob()
    if (report === '' || heard || attempt === 3) return finish(code, report)
    console.error(`${report}\nThe machine died before the job began; starting it again`)
  }
}

async function tryJob() {
  let heard = false
  const machine = new Machine({
    ...options,
    data: join(cache, 'data.xfs'),
    job: positionals.length > 0 ? positionals.join(' ') : values.core ? CORE : SUITE,
    shell: values.shell,
    limit: values.shell ? 86_400 : Number(values.limit),
    stdout: (chunk) => {
      heard = true
      process.stdout.write(chunk)
    },
    stderr: (chunk) => process.stderr.write(chunk),
  })
  process.on('exit', () => machine.cut())
  return { ...(await machine.run()), heard }
}

function finish(code, report) {
  if (report !== '') console.error(report)
  // A run that was to end with totals ends with totals, whatever became of the machine.
  if (report !== '' && positionals.length === 0) console.log('0 passed, 1 failed, 0 skipped')
  return code
}
