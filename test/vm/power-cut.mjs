// Rounds of: boot, let `test/vm/guest/power-cut.mjs` recover and verify what the last round left, let it work, and end
// the machine at a random moment. The data disk is one and the same in all rounds.
import { dataDisk } from './disks.mjs'
import { Machine } from './machine.mjs'

/** What the guest's script prints: first the verdict on what it found, then that it has begun to change things. */
const WORKING = /^working$/m
/** QEMU's own failure, before the guest touched the disk: the round is run again, and told. */
const EMULATOR = /QEMU ended with SIG/
const MAX_ABORTED = 5
const VERIFIED = /^verified: (.*)$/m

/** Runs the rounds and prints the totals; answers the exit status. */
export async function powerCuts(options, dir, rounds) {
  const data = dataDisk(dir, options.cache)
  const seen = new Map()
  let failed = 0
  let aborted = 0
  for (let round = 1; round <= rounds && failed === 0; round++) {
    const result = await cutOnce({ ...options, data })
    if (result.output === '' && EMULATOR.test(result.report) && aborted < MAX_ABORTED) {
      aborted++
      round--
      console.log(
        `the emulator ended by itself before the guest began: ${result.report.trim().split('\n').at(-1)}`,
      )
      continue
    }
    const verdict = VERIFIED.exec(result.output)?.[1]
    if (verdict === undefined || !result.cut) {
      failed++
      console.log(`round ${round} failed: the guest said\n${result.output}${result.report}`)
    } else {
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1)
      console.log(`round ${round}: ${verdict}, cut after ${result.delay} ms`)
    }
  }
  const passed = [...seen.values()].reduce((sum, count) => sum + count, 0)
  console.log([...seen].map(([verdict, count]) => `${count} × ${verdict}`).join(', '))
  console.log(`${passed} passed, ${failed} failed, 0 skipped`)
  return failed === 0 ? 0 : 1
}

async function cutOnce(options) {
  // Chance picks the moment; every moment must be survived, so a run need not be repeatable to be fair. Within this time
  // the emulated machine starts the client, stages, commits and cleans up.
  const delay = Math.floor(Math.random() * 5000)
  let output = ''
  let cut = false
  const machine = new Machine({
    ...options,
    keepData: true,
    init: '/usr/local/sbin/power-cut-init',
    // The whole program by default; `power-cut-commits.mjs` is the commit thread alone, with more commits per second.
    job: `exec node test/vm/guest/${process.env.POWER_CUT_GUEST ?? 'power-cut.mjs'} /data/power-cut`,
    limit: 300,
    console: (chunk) => {
      const before = WORKING.test(output)
      output += String(chunk).replaceAll('\r', '')
      if (before || !WORKING.test(output)) return
      setTimeout(() => {
        cut = true
        machine.cut()
      }, delay)
    },
  })
  const { report } = await machine.run()
  return { output, cut, delay, report: cut ? '' : report }
}
