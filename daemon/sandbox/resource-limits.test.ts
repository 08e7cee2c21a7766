import { describe, expect, it } from 'vitest'
import { boundingLimits, parseHardLimits, withinHardLimits } from './resource-limits.ts'

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units     
Max file size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max processes             96421                96421                processes 
Max open files            1024                 20000                files     
Max locked memory         8192                 8192                 bytes     
`

describe('our own hard limits', () => {
  const hard = parseHardLimits(LIMITS)

  it('are read, and unlimited is absent', () => {
    expect(hard).toEqual({ nproc: 96_421, nofile: 20_000, memlock: 8192 })
  })

  it('bound nothing for who may go beyond them', () => {
    expect(boundingLimits('CapEff:\t0000000001000000\n', LIMITS)).toEqual({})
    expect(boundingLimits('CapEff:\t000001fffeffffff\n', LIMITS)).toEqual(hard)
    expect(boundingLimits('', LIMITS)).toEqual(hard)
  })

  it('bound what can be given; less than asked is said', () => {
    expect(withinHardLimits({ nofile: 65_536, fsize: 1e12 }, hard)).toEqual({
      rlimits: { nofile: 20_000, fsize: 1e12 },
      grants: [{ what: 'limit nofile', requested: '65536', granted: '20000', full: false }],
    })
    expect(withinHardLimits({ nofile: 1024 }, hard).grants).toEqual([])
  })
})
