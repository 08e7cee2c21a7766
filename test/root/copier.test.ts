import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { pidfdOpen } from '../../daemon/kernel/pidfd.ts'
import { type Copier, type Side, startCopier } from '../../daemon/sandbox/copier.ts'
import { needs, root } from '../tier/needs.ts'

const it = needs(root)
const USER = { uid: 4242, gid: 4243 }
const TEXT = 'more than a pipe holds at once '.repeat(10_000)

let dir: string
let begun: Copier[]
let opened: number[]
let callers: ChildProcess[]

/** Has the descriptor as its number 3. */
async function copy(fd: number, side: Side, { most, number = 3, ids = USER }: Odd = {}): Promise<Copier> {
  const caller = spawn('sleep', ['1000'], { ...USER, stdio: ['ignore', 'ignore', 'ignore', fd] })
  callers.push(caller)
  await once(caller, 'spawn')
  const pid = caller.pid ?? 0
  const pidfd = pidfdOpen(pid)
  try {
    const copier = await startCopier({ pid, pidfd, fd: number, ...ids }, side, most)
    begun.push(copier)
    return copier
  } finally {
    closeSync(pidfd)
  }
}

interface Odd {
  most?: number
  number?: number
  ids?: typeof USER
}

async function end(): Promise<void> {
  for (const { stream } of begun) stream.stop()
  await Promise.all(begun.map(({ stream }) => stream.ended))
  for (const caller of callers) {
    caller.kill('SIGKILL')
    await once(caller, 'exit')
  }
  for (const fd of opened) closeSync(fd)
}

function begin(): void {
  begun = []
  opened = []
  callers = []
}

// The program is opened once, and kept.
beforeAll(async () => {
  begin()
  if (root !== undefined) return
  opened.push(openSync('/dev/null', 'w'))
  ;(await copy(opened[0] ?? -1, 'output')).close()
  await end()
})
beforeEach(() => {
  begin()
  dir = mkdtempSync(join(tmpdir(), 'copier-'))
})
afterEach(async () => {
  await end()
  rmSync(dir, { recursive: true })
})

function file(name: string, flags: string): number {
  const fd = openSync(join(dir, name), flags)
  opened.push(fd)
  return fd
}

/** The copiers that this process has started. */
const processes = (): string[] =>
  readdirSync('/proc').filter((name) => {
    try {
      const text = readFileSync(`/proc/${name}/cmdline`, 'utf8')
      return text.startsWith('puzzled-copy') && parentOf(name) === process.pid
    } catch {
      return false
    }
  })
const fact = (pid: string, name: string): string =>
  new RegExp(`^${name}:[\\t ]*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''
const parentOf = (pid: string): number => Number(fact(pid, 'PPid'))

function readAll(fd: number): string {
  const chunks: Buffer[] = []
  for (const chunk = Buffer.alloc(65_536); ; ) {
    const length = readSync(fd, chunk)
    if (length === 0) return Buffer.concat(chunks).toString()
    chunks.push(Buffer.from(chunk.subarray(0, length)))
  }
}

describe('a process that copies for a caller', () => {
  it('has the rights of the caller, two streams, and nothing else', async () => {
    writeFileSync(join(dir, 'in'), TEXT)
    const { close } = await copy(file('in', 'r'), 'input')
    const [pid = ''] = processes()
    expect(['Uid', 'Gid', 'Groups', 'CapEff', 'CapPrm', 'NoNewPrivs'].map((name) => fact(pid, name))).toEqual(
      ['4242\t4242\t4242\t4242', '4243\t4243\t4243\t4243', '', '0000000000000000', '0000000000000000', '1'],
    )
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    expect(open).toEqual([join(dir, 'in'), expect.stringMatching(/^pipe:/), expect.stringMatching(/^pipe:/)])
    // What its own user may not trace belongs to root in /proc.
    expect(statSync(`/proc/${pid}/mem`).uid).toBe(0)
    close()
  })

  it('reads nothing before it may, and all of it then', async () => {
    writeFileSync(join(dir, 'in'), TEXT)
    const fd = file('in', 'r')
    const { stream } = await copy(fd, 'input')
    await sleep(100)
    expect(/pos:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1]).toBe('0')
    stream.go()
    expect(readAll(stream.fd)).toBe(TEXT)
    expect(await stream.ended).toBeNull()
    closeSync(stream.fd)
  })

  it('writes all that it is given, and ends with it', async () => {
    const { stream, close } = await copy(file('out', 'w'), 'output')
    stream.go()
    for (let done = 0; done < TEXT.length; ) done += writeSync(stream.fd, TEXT.slice(done))
    close()
    expect(await stream.ended).toBeNull()
    expect(readFileSync(join(dir, 'out'), 'utf8')).toBe(TEXT)
  })

  it('says what failed: a full disk, a descriptor that is not open for it', async () => {
    const full = openSync('/dev/full', 'w')
    opened.push(full)
    const [first, second] = [await copy(full, 'output'), await copy(file('out', 'w'), 'input')]
    for (const { stream } of [first, second]) stream.go()
    writeSync(first.stream.fd, 'x')
    expect(await first.stream.ended).toBe('ENOSPC')
    expect(await second.stream.ended).toBe('EBADF')
    for (const { close } of [first, second]) close()
  })

  it('is refused where so many of that user are at work, and not when one has ended', async () => {
    const one = await copy(file('a', 'w'), 'output', { most: 1 })
    await expect(copy(file('b', 'w'), 'output', { most: 1 })).rejects.toThrow('1 files and sockets of yours')
    one.close()
    await one.stream.ended
    const other = await copy(file('b', 'w'), 'output', { most: 1 })
    other.close()
  })

  it('is gone when nobody wanted it, and leaves no descriptor here', async () => {
    const open = (): number => readdirSync('/proc/self/fd').length
    const fd = file('out', 'w')
    const before = open()
    const copier = await copy(fd, 'output')
    copier.close()
    expect(await copier.stream.ended).toBeNull()
    expect([open(), processes()]).toEqual([before, []])
  })

  it('is not begun for a descriptor that there is not', async () => {
    const open = (): number => readdirSync('/proc/self/fd').length
    const fd = file('out', 'w')
    const control = await copy(fd, 'output')
    control.close()
    await control.stream.ended
    const before = open()
    await expect(copy(fd, 'output', { number: 9_999 })).rejects.toThrow('has no descriptor 9999')
    await expect.poll(open).toBe(before)
  })

  it('is not begun for a caller who is somebody else, or has more rights than its user', async () => {
    const other = { uid: USER.uid + 1, gid: USER.gid }
    await expect(copy(file('out', 'w'), 'output', { ids: other })).rejects.toThrow(
      'has more rights than its user',
    )
    expect(processes()).toEqual([])
  })

  it('says that something was lost when somebody else kills it', async () => {
    const { stream, close } = await copy(file('out', 'w'), 'output')
    stream.go()
    for (const pid of processes()) process.kill(Number(pid), 'SIGKILL')
    expect(await stream.ended).toBe('EIO')
    close()
  })
})
