import { expect, it } from 'vitest'
import { isWorthKeeping, leftOf, onTop, spentOf, spentOut } from './spent.ts'

it('what is used up for good adds up over the starts, what is there now does not', () => {
  expect(onTop({ cpu: 2, memory: 5, exec: 1 }, { cpu: 3, wall: 7, memory: 100 })).toEqual({
    cpu: 5,
    wall: 7,
    memory: 5,
    exec: 1,
  })
  expect(leftOf({ cpu: 10, memory: 9, exec: 4 }, { cpu: 3, exec: 5 })).toEqual({ cpu: 7, memory: 9, exec: 0 })
  expect(spentOf({ cpu: 5, egress: 7, memory: 1 }, { cpu: 10, memory: 9 })).toEqual({ cpu: 5 })
})

it('what is used up is told by name, and a limit of zero is not used up before anything is used', () => {
  expect(spentOut({ cpu: 10, exec: 3 }, { cpu: 9, exec: 3 })).toBe('exec')
  expect(spentOut({ cpu: 10, exec: 0 }, { cpu: 9 })).toBeUndefined()
  expect(spentOut({}, { cpu: 9 })).toBeUndefined()
})

it('is put on record in steps of a twentieth of its limit, and where it ends', () => {
  expect(isWorthKeeping({ cpu: 4.9 }, { cpu: 0 }, { cpu: 100 })).toBe(false)
  expect(isWorthKeeping({ cpu: 5 }, { cpu: 0 }, { cpu: 100 })).toBe(true)
  expect(isWorthKeeping({ cpu: 9 }, { cpu: 5 }, { cpu: 100 })).toBe(false)
  expect(isWorthKeeping({ cpu: 100 }, { cpu: 98 }, { cpu: 100 })).toBe(true)
  expect(isWorthKeeping({ cpu: 9 }, {}, {})).toBe(false)
  expect(isWorthKeeping({ cpu: 0 }, {}, { cpu: 0 })).toBe(false)
})
