import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Holds every file twice, by a descriptor and by a shared memory map, and writes through both. The first byte of the
 * control file is the wish (0 rest, 1 write, 2 write in bursts, 9 end), the eight behind it count the writes.
 */
const WRITER = `
import mmap, os, random, struct, sys, time
control = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 16)
held = []
for path in sys.argv[2:]:
    fd = os.open(path, os.O_RDWR)
    held.append((fd, os.fstat(fd).st_size, mmap.mmap(fd, 0, mmap.MAP_SHARED)))
count, rested = 0, True
control[8] = 1
while control[0] != 9:
    if control[0] == 0:
        time.sleep(0.0005)
        rested = True
        continue
    if control[0] == 2 and rested:
        # Bursts begin at any moment of what the other side does meanwhile.
        time.sleep(random.random() * 0.08)
    rested = False
    fd, size, shared = random.choice(held)
    data = os.urandom(8)
    at = random.randrange(size // 4096) * 4096
    if random.random() < 0.5:
        os.pwrite(fd, data, at)
    else:
        shared[at:at + 8] = data
        if random.random() < 0.1:
            shared.flush()
    count += 1
    control[1:8] = struct.pack('<Q', count)[:7]
    if control[0] == 2 and count % 20 == 0:
        time.sleep(random.random() * 0.1)
`

const WISH = { rest: 0, write: 1, bursts: 2, end: 9 } as const

/** A process of an agent that outlived its branch's end, with the files of a layer still in its hands. */
export class LayerWriter {
  readonly #control: number
  readonly #process: ChildProcess
  readonly #ended: Promise<string>
  #closed = false

  constructor(folder: string, files: readonly string[]) {
    const control = join(folder, `control-${Math.random().toString(36).slice(2)}`)
    writeFileSync(control, Buffer.alloc(16))
    this.#control = openSync(control, 'r+')
    this.#process = spawn('python3', ['-c', WRITER, control, ...files], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    this.#ended = new Promise((resolve) =>
      this.#process.once('exit', (code, signal) => resolve(signal ?? `status ${code}`)),
    )
    this.#waitFor(() => this.#read(8, 1)[0] === 1)
  }

  do(wish: Exclude<keyof typeof WISH, 'end'>): void {
    writeSync(this.#control, Buffer.from([WISH[wish]]), 0, 1, 0)
  }

  /** Returns when so many more writes were made; blocks this thread, as a commit does. */
  await(writes: number): void {
    const until = this.#count() + writes
    this.#waitFor(() => this.#count() >= until)
  }

  /** After this nothing is written until the next wish. */
  rest(): void {
    this.do('rest')
    for (let before = -1, now = this.#count(); before !== now; now = this.#count()) {
      before = now
      pause(5)
    }
  }

  /** Throws where it had ended by itself: on a full disk a write to a shared map is SIGBUS, and nobody wrote any more. */
  async end(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    writeSync(this.#control, Buffer.from([WISH.end]), 0, 1, 0)
    const how = await this.#ended
    closeSync(this.#control)
    if (how !== 'status 0') throw new Error(`the writer ended with ${how}`)
  }

  #count(): number {
    return this.#read(1, 6).readUIntLE(0, 6)
  }

  #read(at: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    readSync(this.#control, bytes, 0, length, at)
    return bytes
  }

  #waitFor(reached: () => boolean): void {
    for (const end = Date.now() + 60_000; !reached(); pause(1))
      if (Date.now() > end) throw new Error('the writer does not write')
  }
}

const still = new Int32Array(new SharedArrayBuffer(4))
const pause = (ms: number): void => {
  Atomics.wait(still, 0, 0, ms)
}
