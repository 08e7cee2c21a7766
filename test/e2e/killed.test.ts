import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { roundsOf } from '../threats/counts.ts'
import { root } from '../tier/needs.ts'
import { begin, DEVELOPER, type Workplace, workplace } from './cli.ts'

/** A thousand for a release. */
const { rounds: KILLS, timeout } = roundsOf('PUZZLED_ESCAPE_KILLS')

let place: Workplace
beforeEach(() => {
  place = workplace()
})
afterEach(() => place.remove())

/** Where each process of the host is. The dead that wait for the host's init to collect them do not count. */
const cgroupsOfProcesses = (): string[] =>
  readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const dead = /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      return dead ? [] : [readFileSync(`/proc/${pid}/cgroup`, 'utf8')]
    } catch {
      // It ended between the listing and the reading.
      return []
    }
  })

const processesOf = (id: string): string[] => cgroupsOfProcesses().filter((cgroup) => cgroup.includes(id))

async function onlyBranch(): Promise<string> {
  for (;;) {
    const [id] = existsSync(join(place.state, 'branches')) ? readdirSync(join(place.state, 'branches')) : []
    if (id !== undefined) return id
    await setTimeout(50)
  }
}

const stateOf = async (id: string): Promise<string> =>
  (JSON.parse((await place.puzzlectl('show', id, '--json')).out) as { state: string }).state

describe.skipIf(root)('puzzlectl, killed', () => {
  it('while its agent runs: the next command ends the agent and keeps what it wrote', async () => {
    const script = 'echo kept > kept; trap "" HUP TERM; setsid sleep 300 & echo > ready; sleep 300'
    const command = begin(place.project, place.state, DEVELOPER, ['run', '--', 'sh', '-c', script])
    const id = await onlyBranch()
    const upper = join(place.state, 'branches', id, 'layers', '001', '0', 'upper')
    while (!existsSync(join(upper, 'ready'))) await setTimeout(50)
    expect(processesOf(id).length).toBeGreaterThan(1)
    await command.kill()
    expect(await stateOf(id)).toBe('stopped')
    expect(processesOf(id)).toEqual([])
    await command.ended
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(id)
    expect((await place.puzzlectl('commit', id)).status).not.toBe(0)
    expect(existsSync(join(place.project, 'kept'))).toBe(false)
    expect((await place.puzzlectl('approve', id)).status).toBe(0)
    expect(readFileSync(join(place.project, 'kept'), 'utf8')).toBe('kept\n')
  })

  it(`at ${KILLS} random moments of a start: the next command finds nothing that runs and no mount`, {
    timeout: 4 * timeout,
  }, async () => {
    let began = 0
    let longest = 1500
    for (let round = 0; round < KILLS || began === 0; round++) {
      const script = 'trap "" HUP TERM; setsid sleep 300 & sleep 300'
      const command = begin(place.project, place.state, DEVELOPER, ['run', '--', 'sh', '-c', script])
      // From the first instruction of the program to an agent that runs, and every round another moment.
      await setTimeout(Math.random() * longest)
      await command.kill()
      const rows = JSON.parse((await place.puzzlectl('ls', '--json')).out) as { id: string; state: string }[]
      await command.ended
      // Read once for all of them: a thousand rounds leave hundreds of branches.
      const left = [...cgroupsOfProcesses(), readFileSync('/proc/self/mountinfo', 'utf8')].join('\n')
      for (const { id, state } of rows) {
        // `ready`: it was made, and killed before anything of it ran.
        expect(['ready', 'stopped', 'discarded'], state).toContain(state)
        expect(left.includes(id), `Something of ${id} is left`).toBe(false)
      }
      // The control: not every kill may come before there is anything to leave behind. A busy machine takes its time.
      if (rows.length > began) began = rows.length
      else if (began === 0) longest *= 1.5
    }
    expect(began).toBeGreaterThan(0)
  })

  it.each([
    ['commit.before-intent', 'stopped', false],
    ['commit.after-intent', 'committed', true],
    ['commit.cleaned', 'committed', true],
  ])('in a commit at %s: the branch is %s and the base is as it says', async (failpoint, state, landed) => {
    const script = ['run', '--then', 'hold', '--', 'sh', '-c', 'echo new > file']
    await place.puzzlectl(...script)
    const id = await onlyBranch()
    const command = begin(place.project, place.state, DEVELOPER, ['commit', id], `${failpoint}=kill`)
    expect((await command.ended).status).toBeNull()
    expect(await stateOf(id)).toBe(state)
    expect(existsSync(join(place.project, 'file'))).toBe(landed)
    if (landed) return
    expect((await place.puzzlectl('commit', id)).status).toBe(0)
    expect(existsSync(join(place.project, 'file'))).toBe(true)
  })
})
