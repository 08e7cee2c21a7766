import { PassThrough, type Readable } from 'node:stream'

const BACKLOG_BYTES = 64 * 1024
/** What a reader may be behind. The first reader may be behind as far as it likes: the agent waits for it. */
const LATE_BYTES = 1024 * 1024

/**
 * One output, several readers. The first reader holds the agent back when it is slow, as a pipe does; when it goes away
 * the output flows on. Readers that attach later get the last of what was written, and are dropped when they
 * fall too far behind: nobody who looks on may stop an agent.
 */
export class OutputHub {
  readonly first = new PassThrough()
  readonly #source: Readable
  readonly #seen: (chunk: Buffer) => void
  readonly #late = new Set<PassThrough>()
  #backlog: Buffer[] = []
  #backlogBytes = 0
  #ended = false

  /** `seen` is told of everything that passes, and must not wait. */
  constructor(source: NodeJS.ReadableStream, seen: (chunk: Buffer) => void = () => undefined) {
    this.#source = source as Readable
    this.#seen = seen
    this.#source.on('data', (chunk: Buffer) => this.#distribute(chunk))
    this.#source.on('close', () => this.#end())
    this.#source.on('end', () => this.#end())
    this.first.on('drain', () => this.#source.resume())
    this.first.on('close', () => this.#source.resume())
  }

  /** Destroy the result to detach. */
  attach(): Readable {
    const reader = new PassThrough()
    for (const chunk of this.#backlog) reader.write(chunk)
    if (this.#ended) reader.end()
    else {
      this.#late.add(reader)
      reader.on('close', () => this.#late.delete(reader))
    }
    return reader
  }

  #distribute(chunk: Buffer): void {
    this.#seen(chunk)
    this.#remember(chunk)
    for (const reader of this.#late) {
      reader.write(chunk)
      if (reader.writableLength + reader.readableLength > LATE_BYTES)
        reader.destroy(new Error('Detached: too far behind'))
    }
    if (!this.first.destroyed && !this.first.write(chunk)) this.#source.pause()
  }

  #remember(chunk: Buffer): void {
    this.#backlog.push(chunk)
    this.#backlogBytes += chunk.length
    while (this.#backlogBytes > BACKLOG_BYTES && this.#backlog.length > 1)
      this.#backlogBytes -= this.#backlog.shift()?.length ?? 0
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    for (const reader of [this.first, ...this.#late]) reader.end()
    this.#late.clear()
  }
}
