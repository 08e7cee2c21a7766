import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { nativeFile } from '../../daemon/kernel/clone.ts'
import { errnoName } from '../../daemon/kernel/errno.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { ACT_NAMES, ACTS, type Act, readResults, type Targets } from '../../daemon/prove/acts.ts'
import { makeOutside } from '../../daemon/prove/outside.ts'
import { LAYERS, type Layer, without } from '../../daemon/prove/without.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { run } from '../root/branch.fixture.ts'
import { needs, root } from '../tier/needs.ts'
import { branchFor } from './harness.ts'

const check = needs(root)
const DOCUMENT = new URL('../../docs/threat-model.md', import.meta.url)
/** A place outside of every directory that agents get of their own; the room has its own here. */
const OUTSIDE = '/srv'
const PROGRAM = nativeFile('attack')
const undo = new UndoStack()
let targets: Targets

beforeAll(async () => {
  if (root !== undefined) return
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'srv', OUTSIDE])
  undo.push('unmount', () => void execFileSync('umount', [OUTSIDE]))
  const user = { uid: 1000, gid: 1000 }
  targets = (await makeOutside(join(OUTSIDE, 'outside'), PROGRAM, user, undo)).targets
})
afterAll(() => undo.unwind())

/** Where one layer alone stands between the act and its success, and what would be the second. */
const ALONE: Readonly<Partial<Record<Act, Layer>>> = {
  // Landlock judges connections by path from ABI 9 (Linux 7.1).
  socket: 'mounts',
}

/** One branch per act: what one act leaves behind, no other meets. */
async function results(off: readonly Layer[]): Promise<string[]> {
  const launcher = new Launcher({ planner: without(off) })
  const found: string[] = []
  for (const act of ACT_NAMES) {
    const branch = branchFor()
    copyFileSync(PROGRAM, join(branch.base, 'attack'))
    chmodSync(join(branch.base, 'attack'), 0o755)
    const { output, errors } = await run(launcher, branch, ['./attack', act, targets[act]])
    const result = readResults(output, (_kind, value) => errnoName(value))[act]
    found.push(result === 'nothing' ? `nothing (${errors})` : result)
  }
  return found
}

check('with every layer off, every act succeeds', async () => {
  const found = await results(LAYERS)
  expect(Object.fromEntries(ACT_NAMES.map((act, index) => [act, found[index]]))).toEqual(
    Object.fromEntries(ACT_NAMES.map((act) => [act, 'OK'])),
  )
})

check('with any one layer off, another one stops each act', async () => {
  const columns = [await results([])]
  for (const layer of LAYERS) columns.push(await results([layer]))
  for (const [row, act] of ACT_NAMES.entries())
    for (const [column, layer] of ['none', ...LAYERS].entries()) {
      const open = columns[column]?.[row] === 'OK'
      expect([act, layer, open]).toEqual([act, layer, ALONE[act] === layer])
    }
  const table = [
    `| what the agent tries | all on | ${LAYERS.map((layer) => `no ${layer}`).join(' | ')} |`,
    `|---|---|${LAYERS.map(() => '---').join('|')}|`,
    ...ACT_NAMES.map((act, row) => `| ${ACTS[act]} | ${columns.map((column) => column[row]).join(' | ')} |`),
  ].join('\n')
  const document = readFileSync(DOCUMENT, 'utf8')
  const written = document.replace(/(<!-- layers -->\n)[\s\S]*?(\n<!-- end -->)/, `$1${table}$2`)
  if (process.env.PUZZLED_WRITE_DOCS !== undefined) writeFileSync(DOCUMENT, written)
  else expect(written, 'docs/threat-model.md is stale: run with PUZZLED_WRITE_DOCS=1').toBe(document)
})
