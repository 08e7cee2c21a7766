import { readFileSync } from 'node:fs'
import type { SpawnOp } from '../contract/spawn.ts'
import { _LINUX_CAPABILITY_VERSION_3 } from '../kernel/uapi/index.ts'
import { undumpableOp } from '../sandbox/caps-plan.ts'
import { namespacesOf, type Planner, spawnPlan } from '../sandbox/spawn-plan.ts'

/** What can be left out of a start, one at a time. */
export const LAYERS = ['mounts', 'landlock', 'seccomp', 'capabilities', 'processes', 'network'] as const
export type Layer = (typeof LAYERS)[number]

/**
 * A planner that leaves these layers out; without any, the plan is what it was. The tries go as well: they would refuse to start such an agent. Nothing but
 * `puzzlectl prove` and the layer test have it, and all that they start with it is the program of `native/attack.c`.
 */
export const without = (layers: readonly Layer[], planner: Planner = spawnPlan): Planner => {
  if (layers.length === 0) return planner
  const off = new Set<string>(layers)
  const leavesOut = [
    ...(planner.leavesOut ?? []),
    ...(off.has('processes') ? (['NEWPID'] as const) : []),
    ...(off.has('network') ? (['NEWNET'] as const) : []),
  ]
  const plan: Planner = (input) => {
    const whole = planner(input)
    return {
      ...whole,
      namespaces: namespacesOf(input.descriptors.network, leavesOut),
      sections: whole.sections.map(({ name, ops }) => ({ name, ops: sectionWithout(name, ops, off) })),
    }
  }
  return Object.assign(plan, { leavesOut })
}

function sectionWithout(name: string, ops: readonly SpawnOp[], off: ReadonlySet<string>): readonly SpawnOp[] {
  switch (name) {
    case 'tries':
      return []
    case 'root':
      // The first entry makes propagation private: without a root of its own, the agent still must not harm the host.
      return off.has('mounts') ? ops.slice(0, 1) : ops
    case 'capabilities':
      return off.has('capabilities') ? keepCapabilities(ops) : ops
    case 'seccomp':
      return off.has('seccomp') ? [] : ops
    case 'landlock':
      if (off.has('landlock')) return []
      // Places that exist in the agent's root only have no rule in the host's.
      return off.has('mounts') ? ops.map((op) => (isRule(op) ? { ...op, expect: 'any' } : op)) : ops
    default:
      return ops
  }
}

const PR_CAP_AMBIENT = 47
const PR_CAP_AMBIENT_RAISE = 2

/** The agent gets every capability that we have, over exec as well: what it would have if nobody had thought of it. */
function keepCapabilities(ops: readonly SpawnOp[]): SpawnOp[] {
  const own = BigInt(`0x${/^CapPrm:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`)
  const header = new Uint8Array(8)
  new DataView(header.buffer).setUint32(0, _LINUX_CAPABILITY_VERSION_3, true)
  const data = new DataView(new ArrayBuffer(24))
  for (let word = 0; word < 24; word += 4)
    data.setUint32(word, Number((word < 12 ? own : own >> 32n) & 0xffffffffn), true)
  const ambient = Array.from({ length: 64 }, (_, capability) => capability)
    .filter((capability) => (own >> BigInt(capability)) & 1n)
    .map(
      (capability): SpawnOp => ({
        name: `keep capability ${capability}`,
        call: 'prctl',
        args: [PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0],
        expect: 'ok',
      }),
    )
  return [
    undumpableOp(),
    {
      name: 'keep all capabilities',
      call: 'capset',
      args: [header, new Uint8Array(data.buffer)],
      expect: 'ok',
    },
    ...ambient,
    ...ops.filter((op) => op.name === 'set no_new_privs'),
  ]
}

const isRule = (op: SpawnOp): boolean => op.call === 'openat' || op.call === 'landlock_add_rule'
