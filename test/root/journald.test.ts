import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync } from 'node:fs'
import { beforeAll, expect } from 'vitest'
import { syscall } from '../../daemon/kernel/ffi.ts'
import { JOURNAL_SOCKET, sendToJournal } from '../../daemon/kernel/journald.ts'
import { probeJournald } from '../../daemon/kernel/probes/services.ts'
import { AF_UNIX, NR, SOCK_CLOEXEC, SOCK_DGRAM } from '../../daemon/kernel/uapi/index.ts'
import { needs, root, systemd } from '../tier/needs.ts'

// Where a journal runs, its socket is not ours to replace.
const noJournal = systemd === undefined ? 'needs a host without journald' : undefined
const check = needs(root, noJournal)

// The library makes its own socket at the first record and keeps it; without a journal the record is dropped.
beforeAll(() => sendToJournal({ MESSAGE: 'opens the socket' }))

/** A socket in the journal's place, in a /run of this room only. */
function journal(): { receive(): string; close(): void } {
  execFileSync('mount', ['-t', 'tmpfs', 'none', '/run'])
  mkdirSync('/run/systemd/journal', { recursive: true })
  const address = Buffer.alloc(110)
  address.writeUInt16LE(AF_UNIX)
  address.write(JOURNAL_SOCKET, 2)
  const socket = syscall('socket', NR.socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  syscall('bind', NR.bind, socket, address, address.length)
  return {
    receive: () => {
      const bytes = Buffer.alloc(65536)
      return bytes.toString('latin1', 0, syscall('read', NR.read, socket, bytes, bytes.length))
    },
    close: () => {
      closeSync(socket)
      execFileSync('umount', ['-l', '/run'])
    },
  }
}

check(
  'a record reaches the journal field by field, and a newline in a value makes no second field',
  async () => {
    const fake = journal()
    try {
      await sendToJournal({ MESSAGE: 'committed', PUZZLED_BRANCH: 'bcdfgh', PUZZLED_PATH: 'a\nPRIORITY=0' })
      const record = fake.receive()
      expect(record).toContain('MESSAGE=committed\n')
      expect(record).toContain('PUZZLED_BRANCH=bcdfgh\n')
      // The native protocol: the name, a newline, the length as 64 bits, the bytes.
      expect(record).toContain('PUZZLED_PATH\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n')
      await expect(sendToJournal({ 'A=B': 'x' })).rejects.toThrow(/EINVAL/)
      expect((await probeJournald()).level).toBe(1)
    } finally {
      fake.close()
    }
  },
)

check('without a journal the probe says so', async () => {
  expect(await probeJournald()).toMatchObject({ level: 0, detail: expect.stringContaining('ENOENT') })
})
