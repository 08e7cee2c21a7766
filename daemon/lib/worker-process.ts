import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { CHANNEL, frameOf, HeaderReader } from './frames.ts'

export interface WorkerProcessOptions {
  /** A built worker (`workerPath`). */
  readonly file: string
  /** Heap of its JavaScript. */
  readonly heapBytes: number
  /** A larger message ends it. */
  readonly messageBytes: number
  /** What it says, as text that nobody has judged. An exception ends the worker with that reason. */
  readonly message: (text: string) => void
  /** Called once, with the reason. */
  readonly ended: (reason: string) => void
}

type Channel = Duplex & { ref(): unknown; unref(): unknown }

/** No code from text, no `__proto__`: what a worker was sent can name neither. */
const FLAGS = ['--disable-proto=delete', '--disallow-code-generation-from-strings', '--no-warnings']

/**
 * A worker that is a process of its own: unlike a thread it shares no memory with the daemon, so what it does to itself
 * before it reads its first message (other ids, a system call filter) holds for all of it. It has one channel, no
 * environment, and ends with the channel.
 */
export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #channel: Channel
  readonly #options: WorkerProcessOptions
  #fault: string | null = null

  constructor(options: WorkerProcessOptions) {
    this.#options = options
    const heap = `--max-old-space-size=${Math.ceil(options.heapBytes / 2 ** 20)}`
    this.#child = spawn(process.execPath, [...FLAGS, heap, options.file], {
      // A session of its own: a key that interrupts the command line is not for the worker.
      ...{ cwd: '/', env: {}, detached: true },
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    })
    this.#channel = this.#child.stdio[CHANNEL] as Channel
    const reader = new HeaderReader(options.messageBytes)
    this.#channel.on('data', (chunk: Buffer) => this.#take(reader, chunk))
    // A worker that is gone takes no more messages; that it is gone is told by `close`.
    this.#channel.on('error', () => undefined)
    this.#child.once('error', (error) => {
      this.#fault ??= `it cannot be started: ${error.message}`
      if (this.#child.pid === undefined) options.ended(this.#fault)
    })
    this.#child.once('close', (code, signal) =>
      options.ended(this.#fault ?? `it ended with ${signal ?? code}`),
    )
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  send(header: unknown, body: readonly Uint8Array[] = []): void {
    this.#channel.cork()
    for (const part of frameOf(header, body)) this.#channel.write(part)
    this.#channel.uncork()
  }

  /** Ends it, whatever it does at the moment. Its end keeps a program alive: somebody may wait for it. */
  kill(): void {
    this.ref()
    this.#child.kill('SIGKILL')
  }

  ref(): void {
    this.#child.ref()
    this.#channel.ref()
  }

  /** An idle worker does not keep a short-lived program alive. */
  unref(): void {
    this.#child.unref()
    this.#channel.unref()
  }

  #take(reader: HeaderReader, chunk: Buffer): void {
    if (this.#fault !== null) return
    try {
      for (const text of reader.take(chunk)) this.#options.message(text)
    } catch (error) {
      this.#fault = error instanceof Error ? error.message : String(error)
      this.kill()
    }
  }
}
