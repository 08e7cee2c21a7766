import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { SpawnOp } from '../contract/spawn.ts'
import { joinFixture, planOf } from './plan.fixture.ts'
import { joinPlan, opsOf, SECTIONS } from './spawn-plan.ts'

const ops = opsOf(planOf())
const calls = (list: readonly SpawnOp[]): string[] => list.map((op) => op.call)
const indexOf = (what: string | ((op: SpawnOp) => boolean), list: readonly SpawnOp[] = ops): number => {
  const index = list.findIndex(typeof what === 'string' ? (op) => op.call === what : what)
  if (index < 0) throw new Error(`No such call in the plan: ${what}`)
  return index
}
const lastIndexOf = (name: string, list: readonly SpawnOp[] = ops): number => calls(list).lastIndexOf(name)
const named = (text: string) => (op: SpawnOp) => op.name.includes(text)

describe('the order of a start', () => {
  it('makes propagation private before anything is attached', () => {
    const first = indexOf(named('propagation'))
    expect(first).toBeLessThan(indexOf('move_mount'))
    expect(first).toBeLessThan(indexOf('pivot_root'))
  })

  it('opens what the requester may see before the new root exists, with their rights', () => {
    const as = indexOf('setfsuid')
    const open = indexOf(named('open the base "/home/u/app"'))
    const back = lastIndexOf('setfsuid')
    expect(as).toBeLessThan(open)
    expect(open).toBeLessThan(back)
    expect(back).toBeLessThan(indexOf('fsopen'))
  })

  it('looks at files as root only for root', () => {
    const root = opsOf(planOf({ requester: { uid: 0, gid: 0, groups: [0] } }))
    expect(calls(root)).not.toContain('setfsuid')
  })

  it('mounts nothing after the pivot and detaches the old root at once', () => {
    const pivot = indexOf('pivot_root')
    expect(ops[pivot + 1]?.call).toBe('umount2')
    expect(lastIndexOf('move_mount')).toBeLessThan(pivot)
    expect(lastIndexOf('mount_setattr')).toBeLessThan(pivot)
  })

  it('changes groups, then the group, then the user, after the last thing that needs root', () => {
    const groups = lastIndexOf('setgroups', ops.slice(0, indexOf('setresuid')))
    expect(groups).toBeLessThan(indexOf('setresgid'))
    expect(indexOf('setresgid')).toBeLessThan(indexOf('setresuid'))
    for (const privileged of ['pivot_root', 'sethostname', 'mknodat', 'setns', 'fchownat'])
      if (calls(ops).includes(privileged)) expect(indexOf(privileged)).toBeLessThan(indexOf('setresuid'))
  })

  it('enters the working directory as the agent, without capabilities', () => {
    expect(indexOf('chdir')).toBeGreaterThan(indexOf('setresuid'))
    expect(indexOf('chdir')).toBeGreaterThan(indexOf('capset'))
  })

  it('gives up capabilities after the ids and before Landlock', () => {
    expect(indexOf('capset')).toBeGreaterThan(indexOf('setresuid'))
    expect(indexOf('capset')).toBeLessThan(indexOf('landlock_create_ruleset'))
  })

  it('sets no_new_privs before Landlock and seccomp', () => {
    const locked = indexOf(named('no_new_privs'))
    expect(locked).toBeLessThan(indexOf('landlock_restrict_self'))
    expect(locked).toBeLessThan(indexOf('seccomp'))
  })

  it('makes Landlock rules on descriptors opened in the new root', () => {
    const opened = ops.filter(named('for its Landlock rule'))
    expect(opened.length).toBeGreaterThan(3)
    for (const op of opened) expect(ops.indexOf(op)).toBeGreaterThan(indexOf('pivot_root'))
  })

  it('tries every door after it was locked', () => {
    const doors = ops.filter((op) => typeof op.expect === 'object')
    expect(doors.length).toBeGreaterThan(8)
    for (const door of doors) expect(ops.indexOf(door)).toBeGreaterThan(indexOf('landlock_restrict_self'))
  })

  it('closes descriptors before seccomp, which judges what comes after', () => {
    expect(lastIndexOf('close_range')).toBeLessThan(indexOf('seccomp'))
    expect(lastIndexOf('close_range')).toBeGreaterThan(indexOf(named('set descriptor 2')))
  })

  it('forgets the daemon’s descriptors first, but not those that it names', () => {
    const closed = ops.filter((op) => op.call === 'close_range').slice(0, -1)
    expect(ops.slice(0, closed.length)).toEqual(closed)
    expect(closed.map((op) => op.args.slice(0, 2))).toEqual([
      [3, 19],
      [23, 23],
      [25, 0xffffffff],
    ])
  })

  it('configures nothing after seccomp: only doors and exec', () => {
    const after = ops.slice(lastIndexOf('seccomp') + 1)
    expect(after.at(-1)?.call).toBe('execveat')
    for (const op of after.slice(0, -1)) expect(op.expect).toHaveProperty('errno')
  })

  it('uses no descriptor before it is stored', () => {
    for (const plan of [planOf(), planOf({ requester: { uid: 0, gid: 0, groups: [] }, baseOwner: 0 })]) {
      const stored = new Set<string>()
      for (const op of opsOf(plan)) {
        const used = [
          ...op.args.flatMap((arg) =>
            typeof arg === 'object' && arg !== null && 'slot' in arg ? [arg.slot] : [],
          ),
          ...(op.patch ?? []).map((patch) => patch.slot),
        ]
        for (const slot of used) expect(stored, `${op.name} needs "${slot}"`).toContain(slot)
        if (op.store !== undefined) {
          expect(stored, `"${op.store}" is stored twice`).not.toContain(op.store)
          stored.add(op.store)
        }
      }
    }
  })

  it('gives every call a name of its own, so that an error names one step', () => {
    const names = ops.map((op) => op.name)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })
})

describe('docs/spawn.md', () => {
  it('has the chapters of the plan in the order of the plan', () => {
    const text = readFileSync(new URL('../../docs/spawn.md', import.meta.url), 'utf8')
    const chapters = [...text.matchAll(/^## \d+\. .*\(`(\w+)`\)$/gm)].map((match) => match[1])
    expect(chapters).toEqual([...SECTIONS])
  })
})

describe('namespaces', () => {
  it('are all new, and the network is joined when the branch has one', () => {
    expect(planOf().namespaces).toEqual(['NEWNS', 'NEWPID', 'NEWIPC', 'NEWUTS', 'NEWNET'])
    const joined = planOf({
      input: {
        descriptors: {
          init: 1,
          status: 9,
          stdio: [0, 1, 2],
          terminals: 5,
          denials: null,
          ownerMap: null,
          network: 30,
        },
      },
    })
    expect(joined.namespaces).not.toContain('NEWNET')
    expect(calls(opsOf(joined))).toContain('setns')
    expect(calls(opsOf(joined))).not.toContain('ioctl')
  })
})

describe('clocks of its own', () => {
  const profile = { namespaces: { time: true } }
  const written = (list: readonly SpawnOp[]) => {
    const at = list.findIndex((op) => op.name === 'let its clocks begin at 0')
    return { at, text: Buffer.from((list[at]?.args[1] ?? []) as Uint8Array).toString() }
  }

  it('are asked for by the profile, and begin at 0', () => {
    const list = opsOf(planOf({ profile }))
    const { at, text } = written(list)
    expect(text).toBe('monotonic -5000 0\nboottime -6000 0\n')
    const calling = calls(list)
    expect(
      calling.indexOf(
        'unshare',
        list.findIndex((op) => op.name === 'make a time namespace'),
      ),
    ).toBeLessThan(at)
    expect(at).toBeLessThan(calling.indexOf('pivot_root'))
    expect(written(opsOf(planOf())).at).toBe(-1)
  })

  it('are the same for a command that joins, and set while the host’s /proc is there', () => {
    const { input } = joinFixture()
    const list = opsOf(joinPlan({ ...input, profile: { ...input.profile, ...profile }, agent: 40 }))
    const { at, text } = written(list)
    expect(text).toBe('monotonic -5000 0\nboottime -6000 0\n')
    expect(at).toBeLessThan(calls(list).indexOf('setns'))
  })
})

describe('a command that joins a running branch', () => {
  const { profile, input } = joinFixture()
  const plan = joinPlan({ ...input, profile, agent: 40 })

  it('joins by pidfd first, and makes nothing', () => {
    const first = opsOf(plan).find((op) => op.call !== 'close_range' && op.expect !== 'any')
    expect(first).toMatchObject({ call: 'setns', args: [40, expect.any(Number)] })
    expect(plan.namespaces).toEqual([])
    expect(calls(opsOf(plan))).not.toContain('pivot_root')
  })

  it('is locked in as the agent is, call by call', () => {
    const from = SECTIONS.indexOf('session')
    const ofAgent = planOf().sections.filter((section) =>
      SECTIONS.slice(from).some((name) => name === section.name),
    )
    expect(plan.sections.slice(1)).toEqual(ofAgent)
  })
})
