import { describe, expect, it } from 'vitest'
import { hasRoom, judge } from './ledger.ts'
import { type Amounts, amountText, limitsOf } from './limits.ts'
import { exceededError, Meter, type MeterPorts } from './meter.ts'

describe('limits', () => {
  const budgets = { limits: { wall: 60, memory: 1024 }, atLimit: 'freeze' } as const

  it('are narrowed by the caller and widened by a person', () => {
    expect(limitsOf(budgets, { wall: 30, pids: 5 }, { wall: 10 })).toEqual({
      wall: 40,
      memory: 1024,
      pids: 5,
    })
  })

  it.each([{ wall: 61 }, { wall: -1 }, { pids: Number.NaN }])('refuse %j', (asked) =>
    expect(() => limitsOf(budgets, asked, {})).toThrow(/budget/),
  )

  it('read well', () => {
    expect(amountText('memory', 1.5 * 1024 ** 3)).toBe('1.5 GiB')
    expect(amountText('disk', 0)).toBe('0 B')
    expect(amountText('wall', 90)).toBe('90 s')
  })
})

describe('the ledger', () => {
  it('says each threshold once, and again after an extension', () => {
    const first = judge({ cpu: 9.2 }, { cpu: 10 }, 'freeze', {})
    expect(first.crossings).toMatchObject([{ budget: 'cpu', percent: 90 }])
    expect(judge({ cpu: 9.5 }, { cpu: 10 }, 'freeze', first.said).crossings).toEqual([])
    const full = judge({ cpu: 10 }, { cpu: 10 }, 'freeze', first.said)
    expect(full.exceeded).toMatchObject({ budget: 'cpu', used: 10, limit: 10, action: 'freeze' })
    const extended = judge({ cpu: 10 }, { cpu: 20 }, 'freeze', full.said)
    expect(extended).toMatchObject({ crossings: [], exceeded: null })
    expect(judge({ cpu: 18 }, { cpu: 20 }, 'freeze', extended.said).crossings).toHaveLength(1)
  })

  it('says both thresholds of what was used up between two looks', () => {
    const { crossings, exceeded, said } = judge({ pids: 12 }, { pids: 10 }, 'kill', {})
    expect(crossings.map(({ percent }) => percent)).toEqual([90, 100])
    expect(exceeded).toMatchObject({ budget: 'pids', used: 12 })
    expect(judge({ pids: 12 }, { pids: 10 }, 'kill', said).crossings).toEqual([])
  })

  it('knows nothing of what has no limit or no reading', () => {
    expect(judge({ cpu: 1e9 }, { wall: 1 }, 'kill', {}).crossings).toEqual([])
    expect(hasRoom({ cpu: 5 }, { cpu: 5 })).toBe(false)
    expect(hasRoom({ cpu: 5 }, { wall: 5 })).toBe(true)
  })

  it('takes room that a write would not fit in as none, on disk alone', () => {
    const full = (used: Amounts, limits: Amounts) =>
      judge(used, limits, 'freeze', {}).exceeded?.budget ?? null
    const GiB = 2 ** 30
    expect(full({ disk: 20 * GiB - 2 ** 20 }, { disk: 20 * GiB })).toBe('disk')
    expect(full({ disk: 20 * GiB - 2 ** 20 - 1 }, { disk: 20 * GiB })).toBeNull()
    expect(full({ disk: 15 }, { disk: 16 })).toBe('disk')
    expect(full({ memory: 20 * GiB - 1, inodes: 15 }, { memory: 20 * GiB, inodes: 16 })).toBeNull()
    expect(hasRoom({ disk: 20 * GiB - 2 ** 20 }, { disk: 20 * GiB })).toBe(false)
  })

  it('takes a limit of zero as used up', () => {
    expect(judge({ exec: 0 }, { exec: 0 }, 'kill', {}).exceeded?.budget).toBe('exec')
  })
})

class World implements MeterPorts {
  time = 0
  used: Amounts = {}
  readonly log: string[] = []
  readings = async (): Promise<Amounts> => {
    if (this.used.disk === -1) throw new Error('unreadable')
    return this.used
  }
  freeze = async () => void this.log.push('freeze')
  thaw = async () => void this.log.push('thaw')
  kill = async () => void this.log.push('kill')
  announce: MeterPorts['announce'] = (crossing) =>
    void this.log.push(`${crossing.budget} ${crossing.percent}`)
  exceeded: MeterPorts['exceeded'] = (what) => void this.log.push(`exceeded ${what.budget}`)
  failed: MeterPorts['failed'] = (_, action, known) =>
    void this.log.push(`failed, ${action}${known === null ? '' : `, ${known.budget}`}`)
  extended: NonNullable<MeterPorts['extended']> = (kind, limit) => void this.log.push(`${kind} is ${limit}`)
  now = () => this.time
}

describe('a meter', () => {
  it('warns, freezes, and goes on when it is extended; frozen time does not count', async () => {
    const world = new World()
    const meter = new Meter({ wall: 10 }, 'freeze', world)
    world.time = 9_500
    await meter.check()
    world.time = 10_000
    await meter.check()
    expect(world.log).toEqual(['wall 90', 'wall 100', 'freeze', 'exceeded wall'])
    world.time = 1_000_000
    expect(await meter.extend('wall', 5)).toEqual({ resumed: true })
    world.time = 1_004_000
    await meter.check()
    expect(meter.exceeded).toBeNull()
    world.time = 1_005_000
    await meter.check()
    expect(meter.exceeded).toMatchObject({ budget: 'wall', limit: 15 })
    await meter.stop()
    expect(exceededError(meter.exceeded ?? expect.fail(), 'b').data).toMatchObject({
      budget: 'wall',
      branch: 'b',
    })
  })

  it('counts no time in which somebody else made the agent stand still, and does not act then', async () => {
    const world = new World()
    const meter = new Meter({ wall: 10 }, 'freeze', world)
    world.time = 4_000
    await meter.rest()
    world.time = 1_000_000
    await meter.check()
    expect([world.log, meter.exceeded]).toEqual([[], null])
    expect(await meter.extend('wall', 1)).toEqual({ resumed: false })
    meter.goOn()
    world.time = 1_006_900
    await meter.check()
    expect(meter.exceeded).toBeNull()
    world.time = 1_007_000
    await meter.check()
    expect(meter.exceeded).toMatchObject({ budget: 'wall', limit: 11 })
    // It stands still for the budget now: an extension lets it go on.
    await meter.rest()
    expect(await meter.extend('wall', 5)).toEqual({ resumed: true })
    await meter.stop()
  })

  it('goes on where earlier starts stood, and says what was used up in steps and at the end', async () => {
    const world = new World()
    const spent: Amounts[] = []
    const ports = Object.assign(world, { spent: (used: Amounts) => void spent.push(used) })
    const meter = new Meter({ wall: 100, exec: 10, memory: 9 }, 'freeze', ports, { wall: 90, exec: 4 })
    world.used = { exec: 1, memory: 8 }
    world.time = 3_000
    await meter.check()
    expect(spent).toEqual([{ wall: 93, exec: 5 }])
    world.time = 10_000
    await meter.check()
    expect(meter.exceeded).toMatchObject({ budget: 'wall', used: 100 })
    world.used = {}
    expect(await meter.stop()).toEqual({ spent: { wall: 100, exec: 5 }, passed: null })
  })

  it('tells of an agent that was over before it was seen to use too much, but not that it used up what it had', async () => {
    const world = Object.assign(new World(), {
      left: async (): Promise<Amounts> => ({ disk: 101 }),
      passed: (message: string) => void world.log.push(message),
    })
    world.used = { exec: 5 }
    const limits = { exec: 5, disk: 100, wall: 1 }
    world.time = 60_000
    const { passed } = await new Meter(limits, 'freeze', world).stop()
    expect(passed).toMatch(/^The disk budget was passed \(101 B of 100 B\)/)
    expect(world.log).toEqual(['disk 100', passed])
    world.left = async () => ({ disk: 100 })
    expect(await new Meter(limits, 'freeze', world).stop()).toMatchObject({ passed: null })
  })

  it('judges what an agent left that had ended by itself when its limit was met', async () => {
    const world = Object.assign(new World(), { left: async (): Promise<Amounts> => ({ disk: 101 }) })
    world.used = { disk: 101 }
    const late = async (byItself: boolean) => {
      const meter = new Meter({ disk: 100 }, 'kill', world)
      await meter.check()
      expect(meter.acted).toBe(true)
      return (await meter.stop(byItself)).passed
    }
    expect(await late(true)).toMatch(/^The disk budget was passed/)
    // One that was ended for it is not told of twice.
    expect(await late(false)).toBe(null)
  })

  it('tells of an ended agent of which nobody can know what it used', async () => {
    const world = Object.assign(new World(), {
      left: () => Promise.reject(new Error('too deep')),
      passed: (message: string) => void world.log.push(message),
    })
    const { passed } = await new Meter({ disk: 100 }, 'kill', world).stop()
    expect(passed).toMatch(/^Nobody can know .*too deep/)
    expect(world.log).toEqual([passed])
  })

  it('stays frozen while another budget is used up', async () => {
    const world = new World()
    const meter = new Meter({ wall: 10, disk: 100 }, 'freeze', world)
    world.time = 11_000
    world.used = { disk: 100 }
    await meter.check()
    expect(await meter.extend('wall', 10)).toEqual({ resumed: false })
    expect(await meter.extend('disk', 1)).toEqual({ resumed: false })
    expect(await meter.extend('disk', 20)).toEqual({ resumed: true })
    expect(world.log).toEqual(expect.arrayContaining(['wall is 20', 'disk is 121']))
    await meter.stop()
  })

  it('is not thawed before it is frozen by an extension that answers the announcement at once', async () => {
    const world = new World()
    let frozen: () => void = () => undefined
    world.freeze = async () => {
      await new Promise<void>((resolve) => {
        frozen = resolve
      })
      world.log.push('freeze')
    }
    const meter = new Meter({ exec: 10 }, 'freeze', world)
    world.used = { exec: 10 }
    const checked = meter.check()
    await expect.poll(() => world.log).toEqual(['exec 90', 'exec 100'])
    const extended = meter.extend('exec', 10)
    await new Promise((resolve) => setImmediate(resolve))
    frozen()
    expect(await extended).toEqual({ resumed: true })
    await checked
    expect(world.log).toEqual(['exec 90', 'exec 100', 'freeze', 'exceeded exec', 'exec is 20', 'thaw'])
    expect([meter.exceeded, meter.acted]).toEqual([null, false])
    await meter.stop()
  })

  it('kills where the profile says so, and once', async () => {
    const world = new World()
    const meter = new Meter({ pids: 10 }, 'kill', world)
    world.used = { pids: 12 }
    await Promise.all([meter.check(), meter.check()])
    expect(world.log).toEqual(['pids 90', 'pids 100', 'kill', 'exceeded pids'])
    expect(await meter.extend('pids', 10)).toEqual({ resumed: false })
    await meter.stop()
  })

  it.each(['freeze', 'kill'] as const)(
    'does as at a limit (%s) when it cannot read, and once',
    async (atLimit) => {
      const world = new World()
      const meter = new Meter({ disk: 10 }, atLimit, world)
      world.used = { disk: -1 }
      await meter.check()
      await meter.check()
      expect(world.log).toEqual([`failed, ${atLimit}`, atLimit])
      await meter.stop()
    },
  )

  it('lets an agent that it could not read go on when it can, and a person says so', async () => {
    const world = new World()
    const meter = new Meter({ disk: 10 }, 'freeze', world)
    world.used = { disk: -1 }
    await meter.check()
    await expect(meter.extend('disk', 1)).rejects.toThrow('unreadable')
    world.used = { disk: 2 }
    expect(await meter.extend('disk', 1)).toEqual({ resumed: true })
    await meter.stop()
  })

  it.each(['freeze', 'kill'] as const)(
    'tries to %s until it is done, and says once that it was not',
    async (atLimit) => {
      const world = new World()
      const act = world[atLimit]
      let tries = 0
      world[atLimit] = async () => {
        if (++tries < 4) throw new Error('busy')
        act()
      }
      const meter = new Meter({ pids: 10 }, atLimit, world)
      world.used = { pids: 10 }
      for (let look = 0; look < 5; look++) await meter.check()
      // It was read well: what it used too much of is said, too.
      expect(world.log).toEqual(['pids 90', 'pids 100', `failed, ${atLimit}, pids`, atLimit, 'exceeded pids'])
      expect(meter.exceeded).toMatchObject({ budget: 'pids' })
      await meter.stop()
    },
  )
})
