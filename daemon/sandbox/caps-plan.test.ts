import { describe, expect, it } from 'vitest'
import { capsBeforeIdentityOps, capsOps, LOCKED_SECUREBITS } from './caps-plan.ts'
import { lockedByCapabilities, lockedBySeccomp } from './tries.ts'

const PR_CAPBSET_DROP = 24
const PR_SET_SECUREBITS = 28

describe('giving capabilities up', () => {
  const ops = capsOps(40)
  const at = (name: RegExp): number => ops.findIndex((op) => name.test(op.name))

  it('forbids tracing before anything else: the memory is still the daemon’s', () => {
    expect(at(/forbid tracing/)).toBe(0)
  })

  it('drops every capability that the kernel has from the bounding set', () => {
    const dropped = ops.filter((op) => op.args[0] === PR_CAPBSET_DROP).map((op) => op.args[1])
    expect(dropped).toEqual(Array.from({ length: 41 }, (_, capability) => capability))
  })

  it('keeps the right to do so until it is done, and sets no_new_privs at the end', () => {
    expect(at(/bounding/)).toBeLessThan(at(/lock securebits/))
    expect(at(/ambient/)).toBeLessThan(at(/lock securebits/))
    expect(at(/lock securebits/)).toBeLessThan(at(/empty all/))
    expect(at(/no_new_privs/)).toBe(ops.length - 1)
  })

  it('keeps effective capabilities over the identity change, and locks that away afterwards', () => {
    const [before] = capsBeforeIdentityOps()
    expect(before?.args.slice(0, 2)).toEqual([PR_SET_SECUREBITS, 1 << 2])
    // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE with their locks; KEEP_CAPS off and locked.
    expect(LOCKED_SECUREBITS).toBe(0b11101111)
  })

  it('expects success of each', () => {
    expect(ops.filter((op) => op.expect !== 'ok')).toEqual([])
  })
})

describe('doors that are tried', () => {
  it('each have one expected errno', () => {
    for (const door of [...lockedByCapabilities(1000), ...lockedBySeccomp()])
      expect(door.expect).toEqual({ errno: expect.stringMatching(/^(EPERM|ENOSYS)$/) })
  })

  it('do not ask root of a user namespace to become root', () => {
    expect(lockedByCapabilities(0).map((door) => door.call)).not.toContain('setresuid')
    expect(lockedByCapabilities(1000).map((door) => door.call)).toContain('setresuid')
  })
})
