import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { nativeFile } from '../../daemon/kernel/clone.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { ProfileStore } from '../../daemon/policy/profiles.ts'
import { ACT_NAMES } from '../../daemon/prove/acts.ts'
import { type MatrixOptions, runMatrix } from '../../daemon/prove/matrix.ts'
import { makeOutside } from '../../daemon/prove/outside.ts'
import { provenAttacks } from '../../daemon/prove/report.ts'
import { LAYERS, without } from '../../daemon/prove/without.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { warmUp } from '../root/branch.fixture.ts'
import { needs, root } from '../tier/needs.ts'

const check = needs(root)
/** A place outside of every directory that agents get of their own; the room has its own here. */
const OUTSIDE = '/srv'
const undo = new UndoStack()
let options: MatrixOptions

beforeAll(async () => {
  if (root !== undefined) return
  await warmUp(new Launcher())
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'srv', OUTSIDE])
  undo.push('unmount', () => void execFileSync('umount', [OUTSIDE]))
  const user = { uid: 64_321, gid: 64_321 }
  const program = nativeFile('attack')
  const { targets } = await makeOutside(`${OUTSIDE}/outside`, program, user, undo)
  const { profile } = await new ProfileStore().resolve('offline', {})
  options = { room: OUTSIDE, profile, user, program, targets }
})
afterAll(() => undo.unwind())

describe('the attacks of a proof', () => {
  check('are stopped, and each of them works where nothing stands in its way', async () => {
    const attacks = provenAttacks(await runMatrix(options), LAYERS)
    for (const { attack, control, result, outcome, stoppedBy } of attacks)
      expect([attack, control, outcome, result === 'OK', stoppedBy.length > 0]).toEqual([
        attack,
        'OK',
        'stopped',
        false,
        true,
      ])
    console.log(
      attacks
        .map(({ attack, result, stoppedBy }) => `${attack}: ${result} by ${stoppedBy.join(' ')}`)
        .join('\n'),
    )
  })

  check('switching one layer off changes exactly its own cells', async () => {
    const whole = await runMatrix(options)
    for (const layer of LAYERS) {
      const less = await runMatrix({ ...options, planner: without([layer]) })
      expect(less.none).toEqual(whole.none)
      // The column of the layer that is gone is that of no layers at all; every other column is what it was.
      expect([layer, less.alone[layer]]).toEqual([layer, whole.none])
      for (const other of LAYERS)
        if (other !== layer)
          expect([layer, other, less.alone[other]]).toEqual([layer, other, whole.alone[other]])
      const before = provenAttacks(whole, LAYERS)
      for (const [row, after] of provenAttacks(less, LAYERS).entries()) {
        const was = before[row]
        expect([layer, after.attack, after.stoppedBy]).toEqual([
          layer,
          was?.attack,
          was?.stoppedBy.filter((one) => one !== layer),
        ])
        // It escapes exactly where this layer stood alone.
        expect([layer, after.attack, after.outcome]).toEqual([
          layer,
          was?.attack,
          was?.stoppedBy.length === 1 && was.stoppedBy[0] === layer ? 'escaped' : 'stopped',
        ])
      }
    }
    expect(ACT_NAMES.length).toBe(12)
  })
})
