import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect } from 'vitest'
import { type Belongings, residue, takeStock } from './residue.ts'

/**
 * Set up for the tiers that change the machine: after each test nothing may be there that was not there before it.
 * Closing is asynchronous in Node, so the second look is repeated for a while before it counts.
 */
let before: Belongings

beforeEach(() => {
  before = takeStock()
})

afterEach(async () => {
  let left = residue(before, takeStock())
  for (let attempt = 0; attempt < 40 && Object.keys(left).length > 0; attempt++) {
    await sleep(50)
    left = residue(before, takeStock())
  }
  // The lines in full: the runner shortens what it compares.
  expect(left, `The test left something behind: ${JSON.stringify(left, null, 2)}`).toEqual({})
})
