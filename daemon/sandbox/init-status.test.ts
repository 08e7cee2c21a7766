import { closeSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { AgentAgain } from '../contract/branch.ts'
import { INIT_RECORDS } from '../contract/spawn.ts'
import { pipe } from '../kernel/pipe.ts'
import { watchInit } from './init-status.ts'

type Said = readonly (readonly [keyof typeof INIT_RECORDS, number])[]

async function heard(said: Said) {
  const { read, write } = pipe()
  const again: AgentAgain[] = []
  const status = watchInit(read, (one) => void again.push(one))
  const bytes = new Int32Array(said.flatMap(([kind, value]) => [INIT_RECORDS[kind], value]))
  writeSync(write, new Uint8Array(bytes.buffer))
  closeSync(write)
  return { started: await status.started, end: await status.ended, restarts: status.restarts(), again }
}

const failed = (pause: number): Said => [
  ['maxRssKiB', 9],
  ['pauseMillis', pause],
  ['again', 3 << 8],
  ['pauseMillis', 0],
]

describe('what init says', () => {
  it('of an agent that is started once', async () => {
    const { started, end, restarts } = await heard([
      ['started', 2],
      ['maxRssKiB', 2],
      ['ended', 11 | 0x80],
    ])
    expect([started, restarts]).toEqual([{ pid: 2 }, 0])
    expect(end).toEqual({ code: null, signal: 'SIGSEGV', maxRssBytes: 2048 })
  })

  it('of one that is started again: each end, the number of its starts, the most memory of all', async () => {
    const { end, restarts, again } = await heard([
      ['started', 2],
      ...failed(100),
      ['started', 3],
      ...failed(200),
      ['started', 4],
      ['maxRssKiB', 1],
      ['ended', 0],
    ])
    expect(again).toEqual([
      { code: 3, signal: null, restart: 1, pauseMillis: 100 },
      { code: 3, signal: null, restart: 2, pauseMillis: 200 },
    ])
    expect([restarts, end]).toEqual([2, { code: 0, signal: null, maxRssBytes: 9 * 1024 }])
  })

  it('of one that could not be started again', async () => {
    const { ENOENT, EACCES } = constants.errno
    for (const [errno, code, name] of [
      [ENOENT, 127, 'ENOENT'],
      [EACCES, 126, 'EACCES'],
    ] as const) {
      const { started, end, restarts } = await heard([['started', 2], ...failed(100), ['execFailed', errno]])
      expect([started, restarts]).toEqual([{ pid: 2 }, 0])
      expect(end).toMatchObject({ code, signal: null, why: `it could not be started again: ${name}` })
    }
  })

  it('of one that never ran, or that was killed: nothing about its end', async () => {
    expect(await heard([['execFailed', constants.errno.EACCES]])).toMatchObject({
      ...{ started: { errnoName: 'EACCES' }, end: null },
    })
    expect(await heard([['started', 2], ...failed(100), ['started', 3]])).toMatchObject({
      end: null,
      restarts: 1,
    })
    expect(await heard([])).toMatchObject({ started: 'gone', end: null, restarts: 0 })
  })
})
