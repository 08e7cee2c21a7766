import { type FileHandle, open } from 'node:fs/promises'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'

interface Waiting {
  readonly bytes: Buffer
  readonly done: () => void
  readonly failed: (error: Error) => void
}

/**
 * Appends with group commit: what arrives while one fdatasync runs shares the next one. `append` resolves when the
 * bytes are durable. After a failed sync nobody can say what is on the disk, so the log refuses everything.
 */
export class QueueLog {
  readonly #file: FileHandle
  #length: number
  #waiting: Waiting[] = []
  #flushing: Promise<void> | undefined
  #broken: Error | undefined

  private constructor(file: FileHandle, length: number) {
    this.#file = file
    this.#length = length
  }

  /** `length` is where the good records end: a torn tail is cut off before anything is appended behind it. */
  static async open(path: string, length: number): Promise<QueueLog> {
    const file = await open(path, 'r+')
    try {
      await file.truncate(length)
      // What was read must be on the disk before anything relies on it; of an empty log nothing was.
      if (length > 0) await file.datasync()
      return new QueueLog(file, length)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  append(text: string): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken)
    return new Promise((done, failed) => {
      this.#waiting.push({ bytes: Buffer.from(text), done, failed })
      this.#flushing ??= this.#flush()
    })
  }

  async #flush(): Promise<void> {
    // One turn of the loop, so that requests which arrived together are written together.
    await new Promise((next) => setImmediate(next))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await this.#write(Buffer.concat(batch.map((one) => one.bytes)))
        for (const one of batch) one.done()
      } catch (cause) {
        const error = new PuzzledError('state-unreadable', 'Cannot write the request queue', { cause })
        for (const one of batch) one.failed(error)
      }
    }
    this.#flushing = undefined
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken
    try {
      failpoint('queue.before-write')
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#length + at)
        at += bytesWritten
      }
    } catch (error) {
      await this.#cutBack()
      throw error
    }
    failpoint('queue.after-write')
    try {
      await this.#file.datasync()
    } catch (error) {
      this.#broken = new PuzzledError('state-unreadable', 'The request queue could not be synced', {
        cause: error,
      })
      throw error
    }
    this.#length += bytes.length
    failpoint('queue.after-sync')
  }

  /** A full disk leaves half a batch: removing it lets later, smaller appends succeed. */
  async #cutBack(): Promise<void> {
    try {
      await this.#file.truncate(this.#length)
    } catch (cause) {
      this.#broken = new PuzzledError('state-unreadable', 'The request queue has a torn end', { cause })
    }
  }

  async close(): Promise<void> {
    await this.#flushing
    await this.#file.close()
  }
}
