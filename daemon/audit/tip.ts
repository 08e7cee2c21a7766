import { createHash } from 'node:crypto'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { FIRST_PREV } from './record.ts'

/** How far the log had come when it last spoke: a log that ends before this was cut. */
export interface Tip {
  next: number
  prev: string
}

const SLOT = 128

/**
 * One small file that is overwritten in place together with each batch: two slots with a generation and a checksum, so that
 * a torn write, or one that is read halfway, leaves the older slot. It may lag behind the log, never run ahead of it. It is
 * made before the first record: a log without it is one of which it was taken away.
 */
export class TipFile {
  readonly #path: string
  #generation = 0
  #handle: FileHandle | null = null

  constructor(directory: string) {
    this.#path = join(directory, 'tip')
  }

  /** Null where there is none. */
  async read(): Promise<Tip | null> {
    let text: string
    try {
      text = await readFile(this.#path, 'latin1')
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null
      throw error
    }
    const slots = [parseSlot(text.slice(0, SLOT)), parseSlot(text.slice(SLOT, 2 * SLOT))]
    const [newest] = slots.filter((slot) => slot !== null).sort((a, b) => b.generation - a.generation)
    if (newest === undefined)
      throw new PuzzledError('audit-failed', `The audit tip "${this.#path}" is damaged`, {
        hint: 'Keep this log and begin a new one: move its directory away.',
      })
    this.#generation = newest.generation
    return { next: newest.next, prev: newest.prev }
  }

  /** Durable before it resolves. */
  async write(tip: Tip): Promise<void> {
    this.#handle ??= await this.#open()
    const generation = this.#generation + 1
    await this.#handle.write(formatSlot(generation, tip), (generation % 2) * SLOT, 'latin1')
    await this.#handle.datasync()
    this.#generation = generation
  }

  /** For a log that begins. */
  async create(): Promise<void> {
    this.#handle ??= await this.#open()
  }

  async close(): Promise<void> {
    await this.#handle?.close()
    this.#handle = null
  }

  async #open(): Promise<FileHandle> {
    try {
      return await open(this.#path, 'r+')
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
    }
    const fresh = await open(`${this.#path}.new`, 'w', 0o600)
    try {
      await fresh.write(formatSlot(0, { next: 0, prev: FIRST_PREV }).repeat(2))
      await fresh.sync()
      failpoint('audit.tip-made')
      await rename(`${this.#path}.new`, this.#path)
      return fresh
    } catch (error) {
      await fresh.close()
      throw error
    }
  }
}

const sumOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

function formatSlot(generation: number, { next, prev }: Tip): string {
  const text = `${generation} ${next} ${prev}`
  return `${text} ${sumOf(text)}`.padEnd(SLOT - 1, ' ').concat('\n')
}

function parseSlot(text: string): (Tip & { generation: number }) | null {
  const match = /^((\d+) (\d+) ([0-9a-f]{64})) ([0-9a-f]{16}) *\n$/.exec(text)
  const [, whole = '', generation, next, prev = '', sum] = match ?? []
  if (match === null || sumOf(whole) !== sum) return null
  return { generation: Number(generation), next: Number(next), prev }
}
