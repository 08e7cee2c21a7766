import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { JOURNAL_SOCKET, sendToJournal } from '../../daemon/kernel/journald.ts'
import { reserveLowDescriptors } from '../../daemon/kernel/low-descriptors.ts'
import { patience } from './patience.ts'
import { type Belongings, residue, takeStock } from './residue.ts'

/**
 * Set up for the tiers that change the machine: after each test nothing may be there that was not there before it.
 * Closing is asynchronous in Node, so the second look is repeated for a while before it counts.
 */
let before: Belongings
/** Of 50 milliseconds. */
const LOOKS = 40 * patience

// What a process keeps for its life is no test's belonging: low descriptors, and libsystemd's socket.
beforeAll(async () => {
  reserveLowDescriptors()
  if (existsSync(JOURNAL_SOCKET)) await sendToJournal({ MESSAGE: 'tests of puzzled begin', PRIORITY: '7' })
})

beforeEach(() => {
  before = takeStock()
})

afterEach(async () => {
  let left = residue(before, takeStock())
  for (let attempt = 0; attempt < LOOKS && Object.keys(left).length > 0; attempt++) {
    await sleep(50)
    left = residue(before, takeStock())
  }
  // The lines in full: the runner shortens what it compares.
  expect(left, `The test left something behind: ${JSON.stringify(left, null, 2)}`).toEqual({})
})
