import { expect, it } from 'vitest'
import { lowered } from './hard-limits.ts'

const TABLE = `Limit                     Soft Limit           Hard Limit           Units
Max file size             unlimited            unlimited            bytes
Max open files            1024                 20000                files
Max processes             100                  96365                processes
`

it('lowers what is above the hard limit, and says so', () => {
  expect(lowered({ nofile: 65536, nproc: 50, fsize: 2 ** 40 }, TABLE)).toEqual({
    limits: { nofile: 20000, nproc: 50, fsize: 2 ** 40 },
    grants: [{ what: 'limit nofile', requested: '65536', granted: '20000', full: false }],
  })
})

it('leaves alone what is within it, and what is not asked for', () => {
  expect(lowered({ nofile: 1000 }, TABLE)).toEqual({ limits: { nofile: 1000 }, grants: [] })
})
