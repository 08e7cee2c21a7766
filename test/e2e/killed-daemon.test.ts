import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it as plain } from 'vitest'
import { LIFECYCLE } from '../../daemon/branch/lifecycle.ts'
import type { BranchState } from '../../daemon/contract/states.ts'
import { needs, program, root } from '../tier/needs.ts'
import { residue, takeStock } from '../tier/residue.ts'
import { type Begun, end, eventually, type PrivateBus, privateBus, WHO } from './private-bus.ts'

const check = needs(root, program('dbus-daemon'))
const { developer, reviewer } = WHO
let here: PrivateBus
beforeEach(async () => {
  if (root === undefined) here = await privateBus()
})
afterEach(async () => here?.close())

type Call = 'run' | 'hold' | 'freeze' | 'discard' | 'rebase' | 'outside'
type After = BranchState | 'gone'

/** Where the daemon dies, what is on record then, during which call, and what the next daemon finds. */
const DEATHS: readonly (readonly [at: string, was: BranchState, call: Call, after: After])[] = [
  ['branch.preparing', 'preparing', 'run', 'gone'],
  ['branch.ready', 'ready', 'run', 'ready'],
  ['branch.running', 'running', 'run', 'stopped'],
  ['a signal from outside', 'running', 'outside', 'stopped'],
  ['branch.frozen', 'frozen', 'freeze', 'stopped'],
  ['branch.stopped', 'stopped', 'run', 'stopped'],
  ['branch.reviewing', 'reviewing', 'run', 'stopped'],
  ['branch.held', 'held', 'hold', 'held'],
  ['branch.staging', 'staging', 'run', 'stopped'],
  ['commit.staged-one', 'staging', 'run', 'stopped'],
  ['commit.before-intent', 'staging', 'run', 'stopped'],
  ['journal.intent-renamed', 'staging', 'run', 'committed'],
  ['branch.committing', 'committing', 'run', 'committed'],
  ['commit.applied', 'committing', 'run', 'committed'],
  ['commit.cleaned', 'committing', 'run', 'committed'],
  ['branch.committed', 'committed', 'run', 'committed'],
  ['branch.discarding', 'discarding', 'discard', 'gone'],
  ['rebase.reapplied-one', 'held', 'rebase', 'held'],
]

const made = (): string[] => readdirSync(here.project)
const ids = (): string[] => readdirSync(join(here.state, 'branches')).sort()
const onRecord = (id: string): string =>
  (JSON.parse(readFileSync(join(here.state, 'branches', id, 'branch.json'), 'utf8')) as { state: string })
    .state
const states = (): string[] => ids().map(onRecord)
const verb = async (...args: string[]) => (await here.puzzlectl(developer, ...args)).status
const shell = (script: string, ...options: string[]): string[] => [
  ...['run', ...options, '--', 'sh', '-c', `echo kept > kept.txt; ${script}`],
]
const written = (id: string): Promise<void> =>
  eventually(async () => {
    const { out } = await here.puzzlectl(developer, 'diff', '--name-only', id)
    if (out !== 'kept.txt\n') throw new Error(`Not yet: ${out}`)
  })
const oneBranch = (): Promise<string> =>
  eventually(async () => {
    const [id] = ids()
    if (id === undefined) throw new Error('Not yet')
    return id
  })

/** The call during which the daemon is to die, and whoever else waits for it then. */
async function beginCall(call: Call): Promise<Begun[]> {
  if (call === 'run') return [here.begin(developer, ...shell('true'))]
  if (call === 'hold') return [here.begin(developer, ...shell('true', '--then', 'hold'))]
  if (call === 'freeze' || call === 'outside') {
    const run = here.begin(developer, ...shell('exec sleep 600'))
    const id = await oneBranch()
    await written(id)
    return call === 'outside' ? [run] : [run, here.begin(developer, 'freeze', id)]
  }
  expect(await verb(...shell('true', '--then', 'hold'))).toBe(0)
  if (call === 'rebase') writeFileSync(join(here.project, 'other.txt'), 'somebody else')
  return [here.begin(developer, call, ...ids())]
}

/** Processes of the host that belong to these branches; other rooms have agents too. */
const agents = (branches: readonly string[]): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      const dead = /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      const place = readFileSync(`/proc/${pid}/cgroup`, 'utf8')
      return !dead && branches.some((id) => place.includes(`puzzle-${id}.scope`))
    } catch {
      // No process, or one that ended between the listing and the reading.
      return false
    }
  })

type Stock = ReturnType<typeof takeStock>
/** Of what this room held before there was a branch; the slice of all agents may stay, their scopes may not. */
function leaks(before: Stock, branches: readonly string[]): string[] {
  const { mounts, namespaces, tables, cgroups } = residue(before, takeStock())
  const scopes = cgroups?.filter((path) => path.includes('.scope'))
  return [mounts, namespaces, tables, scopes, agents(branches)].flatMap((found) => found ?? [])
}

/** The verb that anybody would type next, and what it must come to. */
async function goOn(id: string, after: After, wrote: boolean): Promise<void> {
  if (after === 'gone') return
  if (after === 'ready' || !wrote) expect(await verb('discard', id)).toBe(0)
  else if (after === 'committed') {
    const { commit } = JSON.parse((await here.puzzlectl(developer, 'show', id, '--json')).out) as {
      commit: { id: string }
    }
    expect(await verb('revert', commit.id)).toBe(0)
    expect(made()).not.toContain('kept.txt')
  } else {
    // What an agent left that did not come to its end is for a person; anything else is judged as ever.
    const status = after === 'held' ? 120 : await verb('commit', id)
    if (status === 120) expect((await here.puzzlectl(reviewer, 'approve', id)).err).toBe('')
    else expect(status).toBe(0)
    expect(made()).toContain('kept.txt')
  }
}

describe('a daemon that is killed', () => {
  plain('dies in every state that is not final', () => {
    const died = new Set<string>([...DEATHS.map(([, was]) => was), 'commit-stuck', 'discard-stuck'])
    expect(Object.keys(LIFECYCLE).filter((state) => !died.has(state))).toEqual([])
  })

  for (const [at, was, call, after] of DEATHS)
    check(`at ${at} (${was}): whoever waits hears it at once, and the branch is ${after}`, async () => {
      const before = takeStock()
      await end(here.daemon, 'SIGTERM')
      await here.start(at.includes('.') ? `${at}=kill` : '')
      const dead = once(here.daemon, 'exit')
      const waiting = await beginCall(call)
      if (call === 'outside') here.daemon.kill('SIGKILL')
      expect(await dead).toEqual([null, 'SIGKILL'])
      // Before there is another daemon: nobody has to wait for that one to hear that this one is gone.
      for (const one of waiting) expect(await one.exited).toBe(69)
      const died = ids()
      expect(states().toSorted()).toEqual(call === 'rebase' ? ['held', 'preparing'] : [was])
      await here.start()
      for (const one of waiting) expect((await one.ended).err).toContain('went away')
      const id = ids()[0] ?? ''
      expect(states()).toEqual(after === 'gone' ? [] : [after])
      await expect.poll(() => leaks(before, died)).toEqual([])
      expect(made().includes('kept.txt')).toBe(after === 'committed')
      const wrote = was !== 'preparing' && was !== 'ready' && at !== 'branch.running'
      if (wrote && after !== 'committed' && after !== 'gone') await written(id)
      await goOn(id, after, wrote)
      expect(await verb('run', '--', 'sh', '-c', 'echo again > again.txt')).toBe(0)
      expect([made().includes('again.txt'), here.said()]).toEqual([true, ''])
      await expect.poll(() => leaks(before, died)).toEqual([])
    })
})

describe('a branch that is stuck', () => {
  const journal = (): string => {
    const directory = join(here.state, 'journal')
    return join(directory, readdirSync(directory).find((name) => name.endsWith('.log')) ?? '')
  }
  const died = async (): Promise<void> => {
    await end(here.daemon, 'SIGKILL')
    await here.start()
  }

  check(
    'in its commit stays so whatever dies, and is followed to its end when a person has mended it',
    async () => {
      await end(here.daemon, 'SIGTERM')
      await here.start('commit.after-intent=kill')
      const dead = once(here.daemon, 'exit')
      const waiting = here.begin(developer, ...shell('true'))
      await dead
      expect(await waiting.exited).toBe(69)
      const whole = readFileSync(journal())
      const damaged = Buffer.from(whole)
      damaged[20] = (damaged[20] ?? 0) ^ 1
      writeFileSync(journal(), damaged)
      const [id = ''] = ids()
      for (let round = 0; round < 2; round++) {
        await here.start()
        expect(states()).toEqual(['commit-stuck'])
        expect(made()).toEqual([])
        // Its undo records are needed: not even root throws it away.
        expect((await here.puzzlectl(WHO.root, 'discard', id)).status).toBe(65)
        await end(here.daemon, 'SIGKILL')
      }
      writeFileSync(journal(), whole)
      await here.start()
      expect(states()).toEqual(['committed'])
      expect(made()).toEqual(['kept.txt'])
    },
  )

  check('in its removal is removed by the next daemon', async () => {
    expect(await verb(...shell('true', '--then', 'hold'))).toBe(0)
    const [id = ''] = ids()
    await end(here.daemon, 'SIGTERM')
    const record = join(here.state, 'branches', id, 'branch.json')
    writeFileSync(record, readFileSync(record, 'utf8').replace('"held"', '"discard-stuck"'))
    await here.start()
    expect(states()).toEqual([])
    await died()
    expect([existsSync(record), made()]).toEqual([false, []])
  })
})
