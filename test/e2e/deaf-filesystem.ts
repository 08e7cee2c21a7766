import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import type { Missing } from '../tier/needs.ts'

/**
 * A filesystem of a user's own with one file. Its server never answers a read or a write, and to process `deaf` and its children
 * nothing at all. What waits for it goes on when the server ends. With an owner and a text it answers, and to the owner only.
 */
const SERVER = `
import ctypes, os, struct, sys
place, deaf, owner, text = sys.argv[1].encode(), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()
device = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=100666,user_id=%d,group_id=%d" % (device, owner, owner)
if owner == 0: options += b",allow_other"
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"deaf", place, b"fuse.deaf", 0, options) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
INIT, GETATTR, READ, WRITE, FLUSH, OPEN, RELEASE = 26, 3, 15, 16, 25, 14, 18
ATTRIBUTES = struct.pack("<QII", 0, 0, 0) + struct.pack("<QQQQQQIIIIIIIIII", 1, 1 << 20, 2048, 0, 0, 0, 0, 0, 0, 0o100666, 1, 0, 0, 0, 4096, 0)
def is_deaf(pid):
    # Whoever has ended already.
    if pid == 0: return True
    facts = dict(line.split(":", 1) for line in open("/proc/%d/status" % pid))
    return deaf in (int(facts["Tgid"]), int(facts["PPid"]))
print("mounted", flush=True)
while True:
    request = os.read(device, 1 << 20)
    _, kind, unique, _, uid, gid, pid, _ = struct.unpack("<IIQQIIII", request[:40])
    answer, error = b"", 0
    if kind == INIT: answer = struct.pack("<IIIIHHIIHH", 7, 31, 0, 0, 8, 6, 1 << 17, 1, 0, 0) + bytes(32)
    elif kind == READ and text: answer = text[struct.unpack("<Q", request[48:56])[0]:]
    elif kind == OPEN: answer = struct.pack("<QII", 1, 1, 0)
    elif kind in (READ, WRITE, RELEASE) or is_deaf(pid): continue
    elif kind == GETATTR: answer = ATTRIBUTES
    elif kind == FLUSH: pass
    else: error = -38
    os.write(device, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)
`

/** Whether this machine lets a user serve files. */
export const fuse: Missing = existsSync('/dev/fuse') ? undefined : 'needs /dev/fuse'

export interface DeafFile {
  readonly path: string
  /** What waits for it goes on, with an error. */
  end(): Promise<void>
}

/** Mounted over an empty file. */
export async function deafFile(
  path: string,
  deaf: number,
  served = { owner: 0, text: '' },
): Promise<DeafFile> {
  writeFileSync(path, '')
  const server = spawn(
    '/usr/bin/python3',
    ['-c', SERVER, path, ...[deaf, served.owner, served.text].map(String)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const exited = once(server, 'exit')
  const said = await Promise.race([once(server.stdout, 'data').then(String), exited.then(() => 'exit')])
  if (!said.startsWith('mounted')) throw new Error(`No filesystem of a user: ${said}`)
  return {
    path,
    end: async () => {
      server.kill('SIGKILL')
      await exited
      spawnSync('umount', ['-l', path])
    },
  }
}
