import { expect, it } from 'vitest'
import { HeldDescriptors } from './held-descriptors.ts'

it('what was given back is not taken, what was left behind is, once', () => {
  const thread = new HeldDescriptors()
  const owner = new HeldDescriptors(thread.shared)
  for (const fd of [7, 8, 9]) thread.hold(fd)
  thread.drop(8)
  expect(owner.takeAll().sort()).toEqual([7, 9])
  expect(owner.takeAll()).toEqual([])
  const next = new HeldDescriptors(thread.shared)
  for (let round = 0; round < 10_000; round++) {
    next.hold(10)
    next.drop(10)
  }
  next.hold(11)
  expect(owner.takeAll()).toEqual([11])
})

it('a disk that answers EIO keeps no other descriptor from being closed', () => {
  const held = new HeldDescriptors()
  for (const fd of [7, 8, 9]) held.hold(fd)
  const closed: number[] = []
  held.closeAll((fd) => {
    closed.push(fd)
    if (fd !== 9) throw Object.assign(new Error('close'), { code: 'EIO' })
  })
  expect(closed.sort()).toEqual([7, 8, 9])
  expect(held.takeAll()).toEqual([])
})

it('more than there are slots is no failure', () => {
  const held = new HeldDescriptors(new SharedArrayBuffer(8))
  for (const fd of [3, 4, 5]) held.hold(fd)
  held.drop(5)
  expect(held.takeAll()).toEqual([3, 4])
})
