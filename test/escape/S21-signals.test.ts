import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { attack, outside, parseReport } from './attack.ts'
import { inBranch } from './harness.ts'

const check = needs(root, program('gcc'))
const WAYS = ['kill', 'thread-kill', 'queue', 'descriptor', 'owner', 'owner-ex', 'owner-thread', 'arrival']
const all = (answer: string) => Object.fromEntries(WAYS.map((way) => [way, answer]))

/** Stands for the daemon: a process of the host with the uid of the agent, which no right of its own keeps safe. */
async function withBystander(work: (pid: string, ended: () => unknown) => Promise<void>): Promise<void> {
  const bystander: ChildProcess = spawn(
    'setpriv',
    ['--reuid=1000', '--regid=1000', '--clear-groups', 'sh', '-c', 'echo ready; exec sleep 1000'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  const gone = once(bystander, 'close')
  try {
    await once(bystander.stdout ?? bystander, 'data')
    await work(String(bystander.pid), async () => {
      await gone
      return bystander.signalCode
    })
  } finally {
    bystander.kill()
    await gone
  }
}

describe('S21 signals to a process number of the host', () => {
  check('control: outside, each of them arrives, and the last one ends the process', () =>
    withBystander(async (pid, ended) => {
      const report = parseReport(outside([attack('summon'), pid]))
      expect(report).toEqual({ ...all('OK'), 'parent-death': 'OK' })
      expect(await ended()).toBe('SIGIO')
    }),
  )

  check('in a branch there is no such number, of its own user and of the daemon', () =>
    withBystander(async (pid) => {
      for (const number of [pid, String(process.pid)]) {
        const { report, exit } = await inBranch('summon', [number])
        expect(report).toEqual({ ...all('ESRCH'), 'parent-death': 'OK' })
        // The death of a parent concerns nobody but who asked to be told.
        expect(exit).toMatchObject({ code: 0, signal: null })
      }
      expect(() => process.kill(Number(pid), 0)).not.toThrow()
    }),
  )
})
