import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))

/** Becomes `puzzlectl run` with this socket for one of its streams. */
const become = (make: string): string => `
import os, socket, sys
${make}
os.dup2(end.fileno(), int(sys.argv[1]))
os.execvp(sys.argv[2], sys.argv[2:])
`
const DATAGRAMS = 'end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); other.detach()'
const PACKETS = 'end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); other.detach()'
const LISTENING = 'end = socket.create_server(("127.0.0.1", 0))'
const STREAM = 'end, other = socket.socketpair(); other.send(b"x"); other.close()'

describe('a stream of a caller that is none', () => {
  const { here, it } = onBus('all', program('python3'))
  const run = (make: string, stream: number, ...command: string[]) => {
    const argv = [process.execPath, puzzlectl, 'run', '--', ...command]
    return here.exec(WHO.developer, ['/usr/bin/python3', '-c', become(make), String(stream), ...argv])
  }
  const open = (): number => readdirSync(`/proc/${here.daemon.pid}/fd`).length

  it('is refused before anything runs, and the daemon keeps nothing of its caller', async () => {
    expect((await run(STREAM, 0, 'cat')).status, 'control').toBe(0)
    const before = open()
    for (const [make, stream] of [
      [DATAGRAMS, 1],
      [PACKETS, 1],
      [LISTENING, 0],
    ] as const) {
      // That this ends at all says that nobody else holds the caller's errors.
      const { status, err } = await run(make, stream, 'echo', 'hello')
      expect(err).toMatch(/Descriptor \d is a socket of datagrams, or one that listens\n {2}hint: Put a pipe/)
      expect(status).toBe(2)
    }
    expect((await here.puzzlectl(WHO.developer, 'ls', '-q')).out).toBe('')
    await expect.poll(open).toBeLessThanOrEqual(before)
  })
})
