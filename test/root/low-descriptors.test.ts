import { closeSync, openSync } from 'node:fs'
import { afterEach, describe, expect } from 'vitest'
import { reserveLowDescriptors, withLowSocket } from '../../daemon/kernel/low-descriptors.ts'
import { AgentNetns, prepareNetns } from '../../daemon/network/namespace.ts'
import { needs, root } from '../tier/needs.ts'

const it = needs(root)
const taken: number[] = []
const take = (count: number): void => {
  for (let n = 0; n < count; n++) taken.push(openSync('/dev/null', 'r'))
}
afterEach(() => {
  for (const fd of taken.splice(0)) closeSync(fd)
})

describe('a process with more than a thousand descriptors', () => {
  // Without the reserve this ends the test's process: "bit out of range 0 - FD_SETSIZE on fd_set".
  it('still makes the rules of a namespace, and counts what they dropped', () => {
    reserveLowDescriptors()
    take(1_100)
    for (let branch = 0; branch < 20; branch++) {
      const { fd } = prepareNetns()
      expect(fd).toBeGreaterThan(1_024)
      const netns = AgentNetns.open(fd, [80], [])
      expect([...netns.dropped().values()].every((count) => count === 0)).toBe(true)
      const { listeners } = netns
      const { udp, tcp } = listeners.names
      const all = [
        listeners.explicit,
        ...listeners.transparent.map((one) => one.fd),
        ...udp.map((one) => one.fd),
        ...tcp,
      ]
      for (const socket of all) closeSync(socket)
      netns.release()
      netns.release()
      closeSync(fd)
    }
  })

  it('is told when none is left, and nothing is made', () => {
    take(1_100)
    let made = 0
    const all = Array.from({ length: 80 }, () => {
      try {
        // Takes the room that is made for it, and keeps it.
        withLowSocket(
          () => {
            made++
            take(1)
          },
          () => undefined,
          () => undefined,
        )
        return 'done'
      } catch (error) {
        return (error as Error).message
      }
    })
    expect(all.at(-1)).toContain('No descriptor below 1024 is free')
    expect(made).toBeLessThan(80)
  })
})
