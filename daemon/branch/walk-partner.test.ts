import { describe, expect, it } from 'vitest'
import { DiffCounts } from './diff-counts.ts'
import { SideSink } from './diff-side-sink.ts'
import { Claims, FIRST, SECOND, WalkMemory } from './walk-memory.ts'
import { Partner, type PartnerParts, type WalkMail } from './walk-partner.ts'
import type { Level, Round } from './walk-round.ts'

const level: Level = { uppers: [], below: null, merged: true, path: Buffer.from([0xff, 0x61]), depth: 1 }

function roundOf(names: number, type = 0o100000): Round {
  const entries = Array.from({ length: names }, (_, index) => ({
    name: Buffer.from(`f${index}`),
    found: [{ layer: 0, type }],
  }))
  return { base: 0, level, entries, gone: false }
}

/** The first walker of two; the second is played by the test. */
function first(more: Partial<PartnerParts> = {}) {
  const memory = new WalkMemory()
  const sent: WalkMail[] = []
  const mail: WalkMail[] = []
  const partner = new Partner({
    side: FIRST,
    memory,
    receiver: new SideSink(new DiffCounts()),
    post: (message) => sent.push(message),
    receive: () => mail.shift(),
    handIn: () => undefined,
    take: () => undefined,
    waiting: () => undefined,
    ...more,
  })
  const offered = () => sent.flatMap((message) => (message.kind === 'offer' ? [message.offer] : []))
  return { memory, mail, partner, offered }
}

describe('a walk with company', () => {
  it('keeps what it has while the other is busy', () => {
    const { partner, offered } = first()
    const turn = partner.begin(roundOf(3))
    expect(
      [turn.next(), turn.next(), turn.next(), turn.next()].map((entry) => entry?.name.toString()),
    ).toEqual(['f0', 'f1', 'f2', undefined])
    expect(turn.end()).toBe(false)
    turn.leave()
    expect(offered()).toEqual([])
  })

  it('offers the outermost round that is worth it, each name to one of the two', () => {
    const { partner, memory, offered } = first()
    partner.begin(roundOf(1))
    const outer = partner.begin(roundOf(20))
    outer.next()
    const inner = partner.begin(roundOf(20))
    memory.setFree(SECOND, true)
    inner.next()
    const [offer] = offered()
    expect(offer).toMatchObject({ base: 0, gone: false, level: { ...level, path: '\xffa' } })
    expect(offer?.entries.map(({ name }) => name)).toEqual(
      Array.from({ length: 19 }, (_, index) => `f${index + 1}`),
    )
    expect(memory.isFree(SECOND)).toBe(false)
    const claims = new Claims(offer?.claims)
    expect(claims.claim()).toBe(0)
    expect(outer.next()?.name.toString()).toBe('f2')
    expect(claims.claim()).toBe(2)
    claims.done(true)
    expect(outer.end()).toBe(true)
  })

  it('offers a few names only where directories are among them', () => {
    for (const [type, offers] of [
      [0o100000, 0],
      [0o040000, 1],
    ] as const) {
      const { partner, memory, offered } = first()
      memory.setFree(SECOND, true)
      partner.begin(roundOf(15, type)).next()
      expect(offered()).toHaveLength(offers)
    }
  })

  it('takes what the other found, and throws what it threw', () => {
    const found: unknown[] = []
    const { partner, memory, mail, offered } = first({ take: (handedIn) => found.push(handedIn) })
    memory.setFree(SECOND, true)
    const turn = partner.begin(roundOf(20))
    turn.next()
    const claims = new Claims(offered()[0]?.claims)
    const sink = new SideSink(new DiffCounts())
    sink.add({ base: 0, path: Buffer.from('p'), kind: 'add', old: null, new: null, findings: [] })
    const handedIn = sink.handIn()
    if (handedIn === undefined) throw new Error('there is something to hand in')
    const error = {
      code: 'too-large',
      name: '',
      message: 'much',
      stack: null,
      hint: 'less',
      data: null,
    } as const
    mail.push({ kind: 'found', found: handedIn }, { kind: 'failed', error })
    claims.done(false)
    expect(() => turn.end()).toThrow(
      expect.objectContaining({ code: 'too-large', message: 'much', hint: 'less' }),
    )
    expect(found).toEqual([handedIn])
  })

  it('waits for nobody who is gone, and does not go on without', () => {
    const { partner, memory } = first({
      waiting: () => {
        throw new Error('gone')
      },
    })
    memory.setFree(SECOND, true)
    const turn = partner.begin(roundOf(20))
    turn.next()
    expect(() => turn.end()).toThrow('gone')
    turn.leave()
    expect(memory.isOver).toBe(true)
    expect(turn.next()).toBeUndefined()
  })

  it('stops the other where it fails itself, and leaves only when that one left', () => {
    let waits = 0
    const { partner, memory, offered } = first({
      waiting: () => {
        if (++waits === 2) new Claims(offered()[0]?.claims).done(false)
      },
    })
    memory.setFree(SECOND, true)
    const turn = partner.begin(roundOf(20))
    turn.next()
    turn.leave()
    expect([memory.isOver, waits]).toEqual([true, 2])
  })
})

describe('the second walker', () => {
  const play = (mail: WalkMail[]) => {
    const memory = new WalkMemory()
    const sent: WalkMail[] = []
    const partner = new Partner({
      side: SECOND,
      memory,
      receiver: new SideSink(new DiffCounts()),
      post: (message) => sent.push(message),
      receive: () => {
        if (mail.length === 0) memory.end()
        return mail.shift()
      },
      handIn: () => undefined,
      take: () => undefined,
      waiting: () => undefined,
    })
    partner.serve()
    return sent
  }

  it('tells what failed before it says that it is through', () => {
    const claims = new Claims()
    const offer = {
      ...{ base: 0, gone: false, level: { ...level, uppers: [-1], path: '' } },
      entries: [{ name: 'f', found: [{ layer: 0, type: 0o100000 }] }],
      claims: claims.shared,
    }
    const sent = play([{ kind: 'offer', offer }])
    expect(sent).toMatchObject([{ kind: 'failed', error: { message: expect.stringContaining('EBADF') } }])
    expect(claims.isDone).toBe(true)
  })

  it('takes no name that the first has taken', () => {
    const claims = new Claims()
    claims.claim()
    const offer = {
      ...{ base: 0, gone: false, level: { ...level, uppers: [-1], path: '' } },
      entries: [{ name: 'f', found: [{ layer: 0, type: 0o100000 }] }],
      claims: claims.shared,
    }
    expect(play([{ kind: 'offer', offer }])).toEqual([])
    expect([claims.isDone, claims.changed]).toEqual([true, false])
  })
})
