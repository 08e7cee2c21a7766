// Rounds of: resume a machine that was saved before it touched the data disk, let the guest recover and verify what the
// last round left, let it work, and end the machine at a random moment. The data disk is one and the same in all rounds.
// Most of a commit is staging, and most moments of it are before INTENT: every other round is aimed at what follows.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { dataDisk } from './disks.mjs'
import { Machine } from './machine.mjs'

/** What the guest's script prints: the verdict on what it found, that it begins to change things, INTENT, and each commit. */
const WORKING = /^working$/m
const INTENT = /^intent$/m
const LANDED = /^landed /m
const VERIFIED = /^verified: (.*)$/m
/** QEMU's own failure, before the guest touched the disk: the round is run again, and told. */
const EMULATOR = /QEMU ended with SIG/
const MAX_ABORTED = 5
/** Enough for the commits; a small memory is soon resumed. */
const MEMORY = 1024

/**
 * Runs the rounds and prints the totals; answers the exit status. `guest` is the script: `power-cut-commits.mjs` is the
 * commit thread alone, with more commits per second; `power-cut.mjs` is the whole program.
 */
export async function powerCuts(options, dir, rounds, guest) {
  const machine = {
    ...options,
    data: dataDisk(dir, options.cache),
    keepData: true,
    rests: true,
    memory: MEMORY,
    init: '/usr/local/sbin/power-cut-init',
    job: `exec node test/vm/guest/${guest} /data/power-cut`,
    limit: 300,
  }
  const saved = join(dir, 'resting')
  const reason = await saveResting(machine, saved)
  if (reason !== undefined) {
    console.log(`No machine could be saved: ${reason}\n0 passed, 1 failed, 0 skipped`)
    return 1
  }
  return cutRounds({ ...machine, saved }, rounds)
}

/** Boots until everything is loaded and the job waits; answers why that failed. */
async function saveResting(options, file) {
  let output = ''
  let resting = false
  const machine = new Machine({
    ...options,
    console: (chunk) => {
      output += chunk
      if (resting || !/^resting\r?$/m.test(output)) return
      resting = true
      machine.save(file).catch((error) => {
        resting = false
        output += error
        machine.cut()
      })
    },
  })
  const { report } = await machine.run()
  return resting ? undefined : `${output}${report}`
}

async function cutRounds(options, rounds) {
  const seen = new Map()
  const aims = [new Aim(WORKING, 1500), new Aim(INTENT, 400)]
  let failed = 0
  let aborted = 0
  // The round before the first only begins: there is nothing to verify yet.
  for (let round = 0; round <= rounds && failed === 0; round++) {
    const result = await cutOnce(options, aims[round % aims.length])
    if (result.output === '' && EMULATOR.test(result.report) && aborted < MAX_ABORTED) {
      aborted++
      round--
      console.log(`the emulator ended before the guest began: ${result.report.trim().split('\n').at(-1)}`)
      continue
    }
    const verdict = VERIFIED.exec(result.output)?.[1]
    if (verdict === undefined || !result.cut) {
      failed++
      console.log(`round ${round} failed: the guest said\n${result.output}${result.report}`)
    } else {
      if (round > 0) seen.set(verdict, (seen.get(verdict) ?? 0) + 1)
      console.log(`round ${round}: ${verdict}; cut again after ${result.delay} ms`)
    }
  }
  const passed = [...seen.values()].reduce((sum, count) => sum + count, 0)
  for (const [verdict, count] of [...seen].sort((one, other) => other[1] - one[1]))
    console.log(`${String(count).padStart(5)} × ${verdict}`)
  console.log(`${passed} passed, ${failed} failed, 0 skipped`)
  return failed === 0 ? 0 : 1
}

/** How long it takes from a mark until the commit has landed, learnt from the rounds that saw it; cuts are aimed within it. */
class Aim {
  #milliseconds

  constructor(mark, milliseconds) {
    this.mark = mark
    this.#milliseconds = milliseconds
  }

  moment() {
    return Math.floor(Math.random() * this.#milliseconds)
  }

  learn(delay, landedAfter) {
    if (landedAfter !== undefined) this.#milliseconds += (landedAfter * 1.3 - this.#milliseconds) / 4
    else if (delay > this.#milliseconds * 0.8) this.#milliseconds *= 1.2
  }
}

async function cutOnce(options, aim) {
  // Chance picks the moment; every moment must be survived, so a run need not be repeatable to be fair.
  const delay = aim.moment()
  let output = ''
  let cut = false
  let began
  let landedAfter
  const machine = new Machine({
    ...options,
    line: `${Math.floor(Date.now() / 1000)} ${randomBytes(32).toString('hex')}`,
    console: (chunk) => {
      output += String(chunk).replaceAll('\r', '')
      if (began !== undefined) {
        if (LANDED.test(output)) landedAfter ??= performance.now() - began
        return
      }
      if (!aim.mark.test(output)) return
      began = performance.now()
      setTimeout(() => {
        cut = true
        machine.cut()
      }, delay)
    },
  })
  const { report } = await machine.run()
  aim.learn(delay, landedAfter)
  return { output, cut, delay, report: cut ? '' : report }
}
