import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { PuzzledEvent } from './contract/events.ts'
import type { AuditMessage } from './kernel/audit-stream.ts'
import { KernelDenials, type ProcessLook } from './kernel-denials.ts'

const [SECCOMP, AVC, ACCESS, DOMAIN] = [1326, 1400, 1423, 1424]
const AT = 1_795_253_440_995
const MOUNT = process.arch === 'x64' ? 165 : 40

const seccomp = (pid: number, session: number, call = MOUNT): AuditMessage => ({
  type: SECCOMP,
  text: `audit(1795253440.995:87): auid=0 uid=0 gid=0 ses=${session} pid=${pid} comm="sh" exe="/bin/sh" sig=0 arch=c000003e syscall=${call} compat=0 ip=0x7f code=0x50000`,
})
const access = (domain: string, path = '"/etc/passwd"'): AuditMessage => ({
  type: ACCESS,
  text: `audit(1795253440.995:30): domain=${domain} blockers=fs.write_file path=${path} dev="vda2" ino=354`,
})
const made = (domain: string, pid: number): AuditMessage => ({
  type: DOMAIN,
  text: `audit(1795253440.995:30): domain=${domain} status=allocated mode=enforcing pid=${pid} uid=0 exe="/x" comm="x"`,
})
const avc = (pid: number): AuditMessage => ({
  type: AVC,
  text: `audit(1795253440.995:24): avc:  denied  { read } for  pid=${pid} comm="cat" name="shadow" dev="dm-0" ino=14 scontext=a tcontext=b tclass=file permissive=0`,
})

/** Processes 100 and 200 are the first of `a` and `b`; 101 is a child in `a`; 999 is a process of the host. */
const worlds = new Map([
  [100, 1],
  [101, 1],
  [200, 2],
  [999, 9],
])
const sessions = new Map([
  [100, 10],
  [200, 20],
  [process.pid, 3],
])
const started = new Map([...worlds.keys()].map((pid) => [pid, AT - 1000]))
const look: ProcessLook = {
  sessionOf: (pid) => sessions.get(pid) ?? null,
  worldOf: (pid) => worlds.get(pid) ?? null,
  startedAt: (pid) => started.get(pid) ?? null,
}

let events: PuzzledEvent[] = []
let counted: string[] = []
let opened = 0
let closed = 0
let say: (messages: readonly AuditMessage[], lost?: boolean) => void = () => undefined
let left: AuditMessage[] = []

const heard = (open?: () => never): KernelDenials =>
  new KernelDenials({
    publish: (event) => events.push(event),
    count: (layer) => counted.push(layer),
    open:
      open ??
      (() => {
        opened++
        return {
          listen: (take) => {
            say = (messages, lost = false) => take(messages, lost)
          },
          drain: () => left.splice(0),
          close: () => {
            closed++
          },
        }
      }),
    look,
  })

const start = (
  kernel: KernelDenials,
  id: string,
  pid: number,
  meanwhile: AuditMessage[] = [],
): Promise<void> =>
  kernel.during(async () => {
    say(meanwhile)
    kernel.begin(id, 'standard', pid)
  })

const told = (): unknown[] =>
  events.map((event) => (event.kind === 'denial' ? [event.branch, event.layer, event.subject] : event.kind))

beforeEach(() => {
  events = []
  counted = []
  left = []
  opened = 0
  closed = 0
})

describe('refusals by the kernel', () => {
  it('by seccomp are those of the branch whose session it is, also when the process is gone', async () => {
    const kernel = heard()
    await start(kernel, 'a', 100)
    await start(kernel, 'b', 200)
    say([seccomp(4000, 20), seccomp(4001, 10), seccomp(4002, 3), seccomp(999, 77)])
    expect(told()).toEqual([
      ['b', 'seccomp', 'mount by sh'],
      ['a', 'seccomp', 'mount by sh'],
    ])
    expect(events[0]).toMatchObject({ rule: 'seccomp.mount', message: expect.stringContaining('EPERM') })
    expect(counted).toEqual(['seccomp', 'seccomp'])
  })

  it('where there are no sessions, are those of a process of the branch that was there before', async () => {
    const kernel = heard()
    sessions.set(100, 3)
    await start(kernel, 'a', 100)
    await start(kernel, 'b', 200)
    say([seccomp(101, 3)])
    expect(told()).toEqual([['a', 'seccomp', 'mount by sh']])
    // The number became another's after the record: nobody is blamed.
    started.set(101, AT + 5)
    say([seccomp(101, 3), avc(101)])
    expect(events.length).toBe(1)
    started.set(101, AT - 1000)
    say([avc(101), avc(999)])
    expect(told().slice(1)).toEqual([['a', 'lsm', 'shadow by cat']])
    sessions.set(100, 10)
  })

  it('by Landlock are those of the branch that made the domain, in whatever order it is told', async () => {
    const kernel = heard()
    await start(kernel, 'a', 100)
    say([access('abc'), made('abc', 100), access('abc', '"/b"')])
    say([access('def'), made('def', 999), access('def')])
    expect(told()).toEqual([
      ['a', 'landlock', '/etc/passwd'],
      ['a', 'landlock', '/b'],
    ])
    expect(events[0]).toMatchObject({ rule: 'landlock.fs.write_file', help: expect.any(String) })
  })

  it('before the start is over are kept for it', async () => {
    const kernel = heard()
    await start(kernel, 'a', 100, [seccomp(4000, 10), access('abc'), made('abc', 100), avc(101)])
    expect(told()).toEqual([
      ['a', 'seccomp', 'mount by sh'],
      ['a', 'landlock', '/etc/passwd'],
      ['a', 'lsm', 'shadow by cat'],
    ])
  })

  it('at the very end are still heard, and after it are nobody’s', async () => {
    const kernel = heard()
    await start(kernel, 'a', 100)
    await start(kernel, 'b', 200)
    left = [seccomp(4000, 10)]
    kernel.end('a')
    say([seccomp(4000, 10), made('abc', 100), access('abc')])
    expect(told()).toEqual([['a', 'seccomp', 'mount by sh']])
    expect(closed).toBe(0)
    kernel.end('b')
    expect([opened, closed]).toEqual([1, 1])
  })

  it('in a flood are counted, and a few of them told', async () => {
    // All of it within a second, however slow the machine is.
    vi.spyOn(performance, 'now').mockReturnValue(5_000)
    onTestFinished(() => void vi.restoreAllMocks())
    const kernel = heard()
    await start(kernel, 'a', 100)
    for (let round = 0; round < 50; round++) say(Array.from({ length: 200 }, () => seccomp(4000, 10)))
    expect(counted.length).toBe(10_000)
    expect(events.length).toBe(3)
    say([], true)
    say([], true)
    expect(events.slice(3).map(({ kind }) => kind)).toEqual(['warning'])
  })

  it('tell nothing that moves a cursor, and nothing of filters that are not ours', async () => {
    const kernel = heard()
    await start(kernel, 'a', 100)
    say([access('abc', Buffer.from('/x\n\u001b[2J').toString('hex').toUpperCase()), made('abc', 100)])
    expect(told()).toEqual([['a', 'landlock', '/x\\u{a}\\u{1b}[2J']])
    say([seccomp(4000, 10, 0)])
    expect(events.length).toBe(1)
  })

  it('are not heard where nobody may listen, and nothing else depends on it', async () => {
    const kernel = heard(() => {
      throw new Error('EPERM')
    })
    await start(kernel, 'a', 100)
    kernel.end('a')
    expect(events).toEqual([])
  })
})
