import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'

/**
 * Counts the frames that leave any interface of the host, from the moment it says `ready`: those that carry one of the
 * texts, and those whose destination is one of the places (`address` or `address:port`). Frames that were sent before
 * a question are in its answer: the tap is in the sender's own path.
 */
const TAP = `
import json, select, socket, struct, sys
asked = json.loads(sys.argv[1])
texts = [(text, text.encode('latin1')) for text in asked['texts']]
seen = {key: 0 for key in asked['texts'] + asked['places']}
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 33, 64 * 1024 * 1024)
s.setblocking(False)
OUTGOING, total = 4, 0
def places(frame, protocol):
    if protocol == 0x800 and len(frame) >= 20:
        to, at, kind = socket.inet_ntop(socket.AF_INET, frame[16:20]), (frame[0] & 15) * 4, frame[9]
    elif protocol == 0x86dd and len(frame) >= 40:
        to, at, kind = socket.inet_ntop(socket.AF_INET6, frame[24:40]), 40, frame[6]
    else: return
    yield to
    if kind in (6, 17) and len(frame) >= at + 4: yield '%s:%d' % (to, struct.unpack('!H', frame[at + 2:at + 4])[0])
def drain():
    global total
    while True:
        try: frame, (_, protocol, kind, *_) = s.recvfrom(65536)
        except BlockingIOError: return
        if kind != OUTGOING: continue
        total += 1
        for place in places(frame, protocol):
            if place in seen: seen[place] += 1
        for text, wanted in texts:
            if wanted in frame: seen[text] += 1
print('ready', flush=True)
while True:
    ready, _, _ = select.select([s, sys.stdin], [], [])
    drain()
    if sys.stdin in ready:
        if sys.stdin.readline() == '': break
        drain()
        lost = struct.unpack('II', s.getsockopt(263, 6, 8))[1]
        print(json.dumps({'seen': seen, 'lost': lost, 'total': total}), flush=True)
`

interface Report {
  readonly seen: Readonly<Record<string, number>>
  readonly lost: number
  readonly total: number
}

/**
 * What leaves on the host's side while an attack runs inside a branch. Whoever uses it also sends something that does
 * leave, and expects that to be seen: a capture that sees nothing proves nothing.
 */
export class Capture {
  readonly #child: ChildProcess
  readonly #said: AsyncIterator<string>

  private constructor(child: ChildProcess, said: AsyncIterator<string>) {
    this.#child = child
    this.#said = said
  }

  static async open(watch: {
    readonly texts?: readonly string[]
    readonly places?: readonly string[]
  }): Promise<Capture> {
    const asked = JSON.stringify({ texts: watch.texts ?? [], places: watch.places ?? [] })
    const child = spawn('python3', ['-c', TAP, asked], { stdio: ['pipe', 'pipe', 'inherit'] })
    const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    expect((await said.next()).value).toBe('ready')
    return new Capture(child, said)
  }

  /** Frames so far, per text and place. None may have been lost. */
  async seen(): Promise<Readonly<Record<string, number>>> {
    this.#child.stdin?.write('report\n')
    const { seen, lost } = JSON.parse((await this.#said.next()).value as string) as Report
    expect(lost, 'frames that the capture lost').toBe(0)
    return seen
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#child.once('close', done))
    this.#child.stdin?.end()
    await ended
  }
}
