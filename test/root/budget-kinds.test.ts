import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import type { BudgetKind } from '../../daemon/contract/profile.ts'
import { type OpenedEngine, openEngine } from '../../daemon/embedded.ts'
import { defaultConfig } from '../../daemon/lib/config.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, program, root } from '../tier/needs.ts'
import { warmUp } from './branch.fixture.ts'
import { Outside } from './network-rig.ts'

const check = needs(root, program('perl'), program('curl'))
/** Whoever owns the base is who the agent runs as; a profile of one's own is for root. */
const USER = 1000
const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const MiB = 2 ** 20

interface Row {
  readonly kind: BudgetKind
  readonly limit: number
  readonly more: number
  /** Perl: what comes near the limit, and then what goes over it. */
  readonly near: string
  readonly over: string
}

/** The agent goes on when it hears this signal, which no other program takes notice of. */
const GO = 'WINCH'
/** What runs in an agent: however slowly the meter looks, it sees the agent near its limit, and then over it. */
const script = ({ near, over }: Row) =>
  `$| = 1; my $heard = 0; $SIG{${GO}} = sub { $heard++ };
   sub pause { select undef, undef, undef, shift }
   sub hold { my $until = shift; pause(.05) while $heard < $until }
   ${near}; hold(1); ${over}; hold(2); print "done\n"`

const used = 'sub used { my ($u, $s) = times; $u + $s }'
const curl = (host: string, body: number) =>
  body === 0
    ? `system "curl -sSo /dev/null http://${host}.example.com/" and die`
    : `system "head -c ${body} /dev/zero | curl -sSo /dev/null --data-binary \\@- http://${host}.example.com/" and die`

const ROWS: readonly Row[] = [
  { kind: 'wall', limit: 4, more: 600, near: 'pause(3.7)', over: 'pause(2)' },
  {
    kind: 'cpu',
    limit: 2,
    more: 600,
    near: `${used} while (used() < 1.85) { my $until = used() + .05; 1 while used() < $until; pause(.02) }`,
    over: `while (used() < 3) { my $until = used() + .05; 1 while used() < $until; pause(.15) }`,
  },
  {
    kind: 'memory',
    limit: 60 * MiB,
    more: 600 * MiB,
    near: `my @x; push @x, "x" x ${MiB} for 1 .. 50; for (1 .. 40) { last if $heard; push @x, "x" x ${MiB / 4}; pause(.3) }`,
    over: `push @x, "x" x ${MiB} for 1 .. 25`,
  },
  {
    kind: 'pids',
    limit: 20,
    more: 200,
    // Where the kernel holds the limit as well, a fork that it refuses makes no child, and no sleeper of the parent.
    near: `my @p; sub child { my $p = fork; return unless defined $p; exec "sleep", "600" if $p == 0; push @p, $p } child for 1 .. 17`,
    over: `child for 1 .. 7; hold(2); kill KILL => @p`,
  },
  {
    kind: 'disk',
    limit: 16 * MiB,
    more: 600 * MiB,
    near: `sub put { open my $f, ">", shift; print $f "x" x shift; close $f } put "big", ${14 * MiB}; for (1 .. 28) { last if $heard; put "small$_", ${MiB / 16}; pause(.4) }`,
    over: `put "more", ${2 * MiB}`,
  },
  {
    kind: 'inodes',
    limit: 200,
    more: 2000,
    near: `sub put { open my $f, ">", shift; close $f } put "f$_" for 1 .. 185`,
    over: `put "g$_" for 1 .. 35`,
  },
  {
    kind: 'deletions',
    limit: 100,
    more: 1000,
    near: `unlink "old/$_" for 1 .. 95`,
    over: `unlink "old/$_" for 96 .. 130`,
  },
  {
    kind: 'requests',
    limit: 10,
    more: 100,
    near: `for (1 .. 9) { ${curl('read', 0)} }`,
    over: `for (1 .. 5) { ${curl('read', 0)}; pause(.3) }`,
  },
  {
    kind: 'egress',
    limit: 40_000,
    more: 400_000,
    near: `for (1 .. 9) { last if $heard; ${curl('live', 4_000)}; pause(.3) }`,
    over: `for (1 .. 5) { ${curl('live', 4_000)}; pause(.3) }`,
  },
  {
    kind: 'queued',
    limit: 40_000,
    more: 400_000,
    near: `for (1 .. 9) { last if $heard; ${curl('queue', 4_000)}; pause(.3) }`,
    over: `for (1 .. 5) { ${curl('queue', 4_000)}; pause(.3) }`,
  },
  {
    kind: 'exec',
    limit: 10,
    more: 100,
    near: `system "/bin/true" for 1 .. 8`,
    over: `for (1 .. 6) { system "/bin/true"; pause(.3) }`,
  },
]

const NETWORK = new Set<BudgetKind>(['requests', 'egress', 'queued'])

/** A profile with a network of three hosts: what is sent at once, what waits, what is only read. */
const PROFILE = `format: puzzled/profile/v1
name: three-hosts
description: Reads, sends and queues.
mounts:
  - { path: [/usr, /bin, /lib, /etc], mode: ro, why: programs are there }
  - { path: [/lib32, /lib64, /libx32], mode: ro, optional: true, why: libraries are there }
exec:
  allow: { any: true, why: programs are run }
network:
  mode: gated
  why: Budgets of the network are tested.
  rules:
    - { id: live, hosts: [live.example.com], methods: [POST], ports: [80], class: live, addresses: [127.0.0.0/8], why: it is tested }
    - { id: queue, hosts: [queue.example.com], ports: [80], class: queue, addresses: [127.0.0.0/8], why: it is tested }
    - { id: read, hosts: [read.example.com], ports: [80], class: read, addresses: [127.0.0.0/8], why: it is tested }
`

describe('every kind of budget', () => {
  let dir = ''
  let opened: OpenedEngine
  let outside: Outside
  const events: PuzzledEvent[] = []
  let listening = new AbortController()

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'budget-'))
    chmodSync(dir, 0o755)
    mkdirSync(join(dir, 'base/old'), { recursive: true })
    for (let n = 1; n <= 130; n++) writeFileSync(join(dir, 'base/old', String(n)), '')
    for (const path of ['base', 'base/old']) chownSync(join(dir, path), USER, USER)
    writeFileSync(join(dir, 'three-hosts.yaml'), PROFILE)
    outside = new Outside()
    await outside.listen()
    writeFileSync(
      join(dir, 'hosts'),
      ['live', 'queue', 'read'].map((name) => `${outside.address} ${name}.example.com\n`).join(''),
    )
    execFileSync('mount', ['--bind', join(dir, 'hosts'), '/etc/hosts'])
    opened = await openEngine({ ...defaultConfig(), state_dir: join(dir, 'state') }, ROOT, true)
    events.length = 0
    listening = new AbortController()
    void (async () => {
      for await (const event of opened.engine.events({ branch: null }, listening.signal)) events.push(event)
    })()
  })
  afterEach(async () => {
    listening.abort()
    for (const { id, state } of await opened.engine.list())
      if (state === 'running' || state === 'frozen') await opened.engine.signal(id, 'KILL')
    await opened.release()
    execFileSync('umount', ['/etc/hosts'])
    await outside.close()
    rmSync(dir, { recursive: true, force: true })
  })

  // What is loaded once and kept is not residue of the first row.
  beforeAll(async () => await warmUp(new Launcher()))

  async function begin(row: Row) {
    const { kind, limit } = row
    const session = await opened.engine.run({
      bases: [join(dir, 'base')],
      profile: NETWORK.has(kind) ? join(dir, 'three-hosts.yaml') : 'offline',
      name: null,
      afterwards: 'discard',
      command: ['/usr/bin/perl', '-e', script(row)],
      cwd: join(dir, 'base'),
      requester: ROOT,
      budgets: { [kind]: limit },
      environment: { PATH: '/usr/bin:/bin' },
      setEnvironment: {},
      stdio: { kind: 'pipes' },
    })
    session.errors?.resume()
    const output = session.output === undefined ? Promise.resolve('') : text(session.output)
    return { ...session, written: output }
  }

  const said = (id: string) => events.filter((event) => event.kind === 'budget' && event.branch === id)

  async function untilSaid(id: string): Promise<void> {
    while (said(id).length === 0) {
      expect((await opened.engine.show(id)).state).not.toBe('stopped')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async function untilFrozen(id: string): Promise<void> {
    for (;;) {
      const { state } = await opened.engine.show(id)
      if (state === 'frozen') return
      expect(state).toBe('running')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  for (const row of ROWS)
    check(
      `${row.kind}: said at 90 %, asked at 100 %, and with more the agent ends as it would have`,
      async () => {
        const { kind, limit, more } = row
        const agent = await begin(row)
        await untilSaid(agent.id)
        await opened.engine.signal(agent.id, GO)
        await untilFrozen(agent.id)
        expect(said(agent.id)).toEqual([
          expect.objectContaining({ budget: kind, limit, percent: 90 }),
          expect.objectContaining({ budget: kind, limit, percent: 100 }),
        ])
        expect(await opened.engine.show(agent.id)).toMatchObject({
          state: 'frozen',
          reason: expect.stringContaining(`The ${kind} budget is used up`),
        })
        // Its meter stands still with it: nobody may let it run without more.
        await expect(opened.engine.thaw(agent.id)).rejects.toMatchObject({
          code: 'budget-exceeded',
          data: { branch: agent.id, budget: kind, limit, action: 'freeze' },
          hint: expect.stringContaining(`puzzlectl budget ${agent.id} ${kind}=`),
        })
        expect(await opened.engine.extend(agent.id, kind, more)).toMatchObject({
          state: 'running',
          extensions: { [kind]: more },
        })
        await opened.engine.signal(agent.id, GO)
        expect(await agent.written).toBe('done\n')
        expect(await agent.exited).toMatchObject({ code: 0, cause: 'exited' })
        await opened.engine.finish(agent.id)
      },
    )
})
