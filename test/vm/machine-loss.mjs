// The machine is lost, then shut down, while branches are held, running, frozen and committing; after each boot everything
// must be in its documented state. `guest/machine-loss.mjs` is the other half.
import { dataDisk } from './disks.mjs'
import { Machine } from './machine.mjs'

/** Each boot, and how it ends: the first as by a power cut, the second by an orderly shutdown. */
const BOOTS = [{ stage: 'begin', cut: true }, { stage: 'again', shutdown: true }, { stage: 'end' }]

/** Runs the boots and prints the totals; answers them. */
export async function machineLoss(options, dir) {
  const data = dataDisk(dir, options.cache)
  const totals = { passed: 0, failed: 0, skipped: 0 }
  for (const { stage, cut = false, shutdown = false } of BOOTS) {
    const ready = await boot({ ...options, data, keepData: true }, stage, { cut, shutdown })
    if (ready) totals.passed++
    else totals.failed++
    console.log(`${ready ? 'ok  ' : 'FAIL'} machine lost, boot "${stage}"`)
    if (!ready) break
  }
  console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`)
  return totals
}

async function boot(options, stage, { cut, shutdown }) {
  let output = ''
  const orderly = shutdown
    ? '; status=$?; systemctl stop puzzled.service; systemctl poweroff; sleep 300; exit $status'
    : ''
  const machine = new Machine({
    ...options,
    job: `node test/vm/guest/machine-loss.mjs ${stage}${orderly}`,
    stdout: (chunk) => {
      output += chunk
      process.stdout.write(chunk)
      if (cut && output.includes(`ready: ${stage}`)) machine.cut()
    },
    stderr: (chunk) => process.stderr.write(chunk),
  })
  const { code, report } = await machine.run()
  const ready = output.includes(`ready: ${stage}`)
  if (!ready) console.log(`the machine ended with ${code}${report}`)
  return ready
}
