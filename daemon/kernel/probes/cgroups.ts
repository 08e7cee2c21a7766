import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FeatureName } from '../../contract/features.ts'
import { errnoOf } from '../../lib/errors.ts'
import { cgroupHierarchy } from '../cgroup.ts'
import type { Finding } from '../feature-text.ts'
import { O_RDONLY } from '../uapi/index.ts'
import { failedCall, op, text } from './calls.ts'

type CgroupFindings = Partial<Record<FeatureName, Finding>>

/** A file of each controller and a value that limits nothing; limits of io name a device, so there a look must do. */
const CONTROLLERS = {
  cpu: ['cpu.max', 'max 100000'],
  memory: ['memory.max', 'max'],
  io: ['io.max', ''],
  pids: ['pids.max', 'max'],
} as const

/** Everything about cgroup v2, in empty cgroups that are removed again. */
export async function probeCgroups(): Promise<CgroupFindings> {
  const hierarchy = cgroupHierarchy()
  if (hierarchy === undefined) return allMissing('cgroup v2 is not mounted')
  // Branches live at the top of the hierarchy where that is allowed, else in what this service was delegated.
  const own = join(hierarchy, /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/')
  let best: CgroupFindings = {}
  for (const parent of new Set([hierarchy, own])) best = better(best, await probeBelow(parent))
  return best
}

/** Per feature what was found first, unless the other place has more of it. */
function better(first: CgroupFindings, second: CgroupFindings): CgroupFindings {
  const merged: CgroupFindings = { ...second, ...first }
  for (const [name, finding] of Object.entries(second) as [FeatureName, Finding][])
    if (finding.level > (first[name]?.level ?? -1)) merged[name] = finding
  return merged
}

async function probeBelow(parent: string): Promise<CgroupFindings> {
  const cgroup = join(parent, `puzzled-probe-${process.pid}`)
  try {
    mkdirSync(cgroup)
  } catch (error) {
    return allMissing(`mkdir ${cgroup}: ${errnoOf(error) ?? String(error)}`)
  }
  try {
    return await probeIn(parent, cgroup)
  } finally {
    rmdirSync(cgroup)
  }
}

function allMissing(detail: string): CgroupFindings {
  const finding: Finding = { level: 0, detail }
  const findings: CgroupFindings = { cgroup2: finding, 'clone3-into-cgroup': finding }
  for (const name of Object.keys(CONTROLLERS)) findings[`cgroup2-${name}` as FeatureName] = finding
  return findings
}

async function probeIn(parent: string, cgroup: string): Promise<CgroupFindings> {
  // In this order: Linux 6.18 was seen to kill whatever is born in a cgroup that was ever written to cgroup.kill.
  const born = await bornIn(cgroup)
  const findings: CgroupFindings = { cgroup2: freezeAndKill(cgroup), 'clone3-into-cgroup': born }
  for (const name of Object.keys(CONTROLLERS) as (keyof typeof CONTROLLERS)[])
    findings[`cgroup2-${name}`] = controllerFinding(parent, cgroup, name)
  return findings
}

function freezeAndKill(cgroup: string): Finding {
  writeFileSync(join(cgroup, 'cgroup.freeze'), '1')
  const frozen = /^frozen 1$/m.test(readFileSync(join(cgroup, 'cgroup.events'), 'utf8'))
  writeFileSync(join(cgroup, 'cgroup.freeze'), '0')
  if (!frozen) return { level: 0, detail: 'cgroup.freeze has no effect' }
  if (existsSync(join(cgroup, 'cgroup.kill'))) {
    writeFileSync(join(cgroup, 'cgroup.kill'), '1')
    return { level: 2, detail: `a cgroup below ${join(cgroup, '..')} was frozen and killed` }
  }
  return {
    level: 1,
    detail: 'there is no cgroup.kill',
    restriction: 'A branch is killed by freezing it and killing its processes one by one.',
    remedy: 'Boot Linux 5.14 or newer.',
  }
}

async function bornIn(cgroup: string): Promise<Finding> {
  const directory = openSync(cgroup, O_RDONLY)
  const answer = Buffer.alloc(4096)
  try {
    const failed = await failedCall(
      [],
      [
        op('openat', [-100, text('/proc/self/cgroup'), 0], { store: 'file', name: 'open /proc/self/cgroup' }),
        op('read', [{ slot: 'file' }, answer, answer.length]),
      ],
      directory,
    )
    if (failed !== undefined) return { level: 0, detail: failed }
    const born = /^0::.*puzzled-probe-\d+$/m.test(answer.toString('utf8'))
    return { level: born ? 1 : 0, detail: born ? 'a child was born in a cgroup' : 'the child was elsewhere' }
  } finally {
    closeSync(directory)
  }
}

/** Enables the controller for the new cgroup where it is not yet, uses it, and leaves everything as it was. */
function controllerFinding(parent: string, cgroup: string, name: keyof typeof CONTROLLERS): Finding {
  const words = (file: string) => readFileSync(join(parent, file), 'utf8').trim().split(' ')
  if (!words('cgroup.controllers').includes(name))
    return { level: 0, detail: `${name} is not in ${join(parent, 'cgroup.controllers')}` }
  const enabled = words('cgroup.subtree_control').includes(name)
  const [file, value] = CONTROLLERS[name]
  try {
    if (!enabled) writeFileSync(join(parent, 'cgroup.subtree_control'), `+${name}`)
    try {
      if (value === '') readFileSync(join(cgroup, file))
      else writeFileSync(join(cgroup, file), value)
    } finally {
      // A branch that was placed meanwhile may count on it by now.
      if (!enabled && !existsSync(join(parent, 'puzzle.slice')))
        writeFileSync(join(parent, 'cgroup.subtree_control'), `-${name}`)
    }
    return { level: 1, detail: `${file} works` }
  } catch (error) {
    const remedy = `Start puzzled as a service (Delegate=yes); ${parent} holds processes or is not ours.`
    return { level: 0, detail: `${name} in ${parent}: ${errnoOf(error) ?? String(error)}`, remedy }
  }
}
