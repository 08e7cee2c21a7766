import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

const POLL = { timeout: 60_000, interval: 200 }
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

const LINGER_SECONDS = 25

/**
 * Runs `puzzlectl` with a socket for one of its streams that is full and lingers, and whose last copy is the daemon's once
 * everybody else has gone. What is written at the end says that this is so. `waiting`: in another socket, which is standard
 * input, and to read from that is to drop it.
 */
const LINGERING = `
import os, socket, struct, subprocess, sys, time
listener = socket.create_server(("127.0.0.1", 0))
end = socket.create_connection(listener.getsockname())
other, _ = listener.accept()
end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, ${LINGER_SECONDS}))
end.setblocking(False)
try:
    while True: end.send(bytes(65536))
except BlockingIOError: pass
if sys.argv[1] == "waiting":
    sender, door = socket.socketpair()
    socket.send_fds(sender, [b"x"], [end.fileno()])
    end.close()
    end, stream = door, 0
else: stream = int(sys.argv[1])
streams = {0: subprocess.DEVNULL, 1: subprocess.DEVNULL, stream: end.fileno()}
run = subprocess.Popen(sys.argv[2:], stdin=streams[0], stdout=streams[1], stderr=subprocess.DEVNULL)
end.close()
while not os.path.exists("begun"): time.sleep(0.05)
run.kill(); run.wait()
print("gone", flush=True)
time.sleep(${LINGER_SECONDS + 10})
`

describe('a socket that lingers', () => {
  const { here, it } = onBus('each', program('python3'))

  it.for(['0', '1', 'waiting'])('as descriptor (%s) holds nobody up but who closes it', async (stream) => {
    const begun = join(here.project, 'begun')
    const argv = [process.execPath, puzzlectl, 'run', '--base', here.project, '--', 'sh', '-c']
    const script = 'echo > /dev/null; sleep 3'
    chmodSync(here.project, 0o777)
    const held = here.background(WHO.developer, [
      '/usr/bin/python3',
      '-c',
      LINGERING,
      stream,
      ...argv,
      script,
    ])
    let longest = 0
    const list = async (): Promise<string> => {
      const before = performance.now()
      const { status, out } = await here.puzzlectl(WHO.developer, 'ls')
      longest = Math.max(longest, performance.now() - before)
      expect(status).toBe(0)
      return out
    }
    try {
      await expect.poll(list, POLL).toContain('running')
      writeFileSync(begun, '')
      for (const until = performance.now() + 8_000; performance.now() < until; ) await list()
      expect(await list()).not.toContain('running')
      expect(longest).toBeLessThan((LINGER_SECONDS * 1000) / 2)
    } finally {
      held.child.kill('SIGKILL')
      await held.exited
    }
  })
})
