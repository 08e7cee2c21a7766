import { chmodSync, chownSync, copyFileSync, mkdirSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { BranchRecord } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'
import { errnoName } from '../kernel/errno.ts'
import { Launcher, type LaunchRequest } from '../sandbox/launch.ts'
import { type Planner, spawnPlan } from '../sandbox/spawn-plan.ts'
import { ACT_NAMES, type ActResults, readResults, type Targets } from './acts.ts'
import type { Matrix } from './report.ts'
import { LAYERS, type Layer, without } from './without.ts'

export interface MatrixOptions {
  /** A folder of its own that everybody may enter. */
  readonly room: string
  readonly profile: Profile
  readonly user: { readonly uid: number; readonly gid: number }
  readonly program: string
  readonly targets: Targets
  /** Instead of the product's: the test of the proof leaves a layer out of everything. */
  readonly planner?: Planner
}

/** Every act with all layers, with none, and with each alone: one branch for each of them. */
export async function runMatrix(options: MatrixOptions): Promise<Matrix> {
  const planner = options.planner ?? spawnPlan
  const run = (off: readonly Layer[]): Promise<ActResults> =>
    runActs(options, off.length === 0 ? planner : without(off, planner))
  const all = await run([])
  const none = await run(LAYERS)
  const alone = {} as Record<Layer, ActResults>
  for (const layer of LAYERS) alone[layer] = await run(LAYERS.filter((other) => other !== layer))
  return { all, none, alone }
}

let branches = 0

async function runActs(options: MatrixOptions, planner: Planner): Promise<ActResults> {
  const { request, base } = makeBranch(options)
  copyFileSync(options.program, join(base, 'attack'))
  chmodSync(join(base, 'attack'), 0o755)
  const argv = ['./attack', ...ACT_NAMES.flatMap((act) => [act, options.targets[act]])]
  const agent = await new Launcher({ planner }).start({ ...request, argv })
  agent.input?.end()
  const output = agent.output === undefined ? '' : await text(agent.output)
  agent.errors?.resume()
  await agent.exited
  return readResults(output, nameOf)
}

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, value]) => [value, name]))

const nameOf = (kind: 'errno' | 'signal', value: number): string =>
  kind === 'errno' ? errnoName(value) : (SIGNALS.get(value as NodeJS.Signals & number) ?? `SIG${value}`)

/** A base and one layer over it, without a store: nothing of this is ever committed. */
function makeBranch({ room, profile, user }: MatrixOptions): {
  request: Omit<LaunchRequest, 'argv'>
  base: string
} {
  const id = `prove${process.pid}x${branches++}`
  const base = join(room, id)
  const layer = join(room, `${id}.layer`)
  for (const path of [base, layer, join(layer, 'upper'), join(layer, 'work')]) mkdirSync(path)
  for (const path of [base, join(layer, 'upper')]) {
    chownSync(path, user.uid, user.gid)
    chmodSync(path, 0o755)
  }
  const time = new Date().toISOString()
  const record: BranchRecord = {
    ...{ version: 1, id, name: null, state: 'running', reason: '', createdAt: time, updatedAt: time },
    requester: { ...user, groups: [user.gid], name: 'prove' },
    bases: [{ path: base, dev: statSync(base).dev, filesystem: '', nested: [] }],
    profile: { name: profile.name, sha256: '', resolved: profile },
    ...{ command: ['./attack'], cwd: base, afterwards: 'discard', layers: 1, parent: null, exit: null },
    ...{ grants: [], digest: null, verdict: null, commit: null, extensions: {} },
  }
  const mounts = [{ base, lowers: [base], upper: join(layer, 'upper'), work: join(layer, 'work') }]
  return { base, request: { record, profile, mounts, cwd: base, environment: {}, stdio: { kind: 'pipes' } } }
}
