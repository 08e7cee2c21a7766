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
 * One small file that is overwritten in place together with each batch: two slots with a generation, so that a torn
 * write leaves the older slot. It may lag behind the log, never run ahead of it.
 */
export class TipFile {
  readonly #path: string
  #generation = 0
  #handle: FileHandle | null = null

  constructor(directory: string) {
    this.#path = join(directory, 'tip')
  }

  async read(): Promise<Tip> {
    let text: string
    try {
      text = await readFile(this.#path, 'latin1')
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return { next: 0, prev: FIRST_PREV }
      throw error
    }
    const slots = [parseSlot(text.slice(0, SLOT)), parseSlot(text.slice(SLOT, 2 * SLOT))]
    const [newest] = slots.filter((slot) => slot !== null).sort((a, b) => b.generation - a.generation)
    if (newest === undefined)
      throw new PuzzledError('audit-failed', `The audit tip "${this.#path}" is damaged`, {
        hint: 'Verify the log (puzzlectl audit verify) before removing this file.',
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
    await fresh.write(formatSlot(0, { next: 0, prev: FIRST_PREV }).repeat(2))
    await fresh.sync()
    failpoint('audit.tip-made')
    await rename(`${this.#path}.new`, this.#path)
    return fresh
  }
}

const formatSlot = (generation: number, { next, prev }: Tip): string =>
  `${generation} ${next} ${prev}`.padEnd(SLOT - 1, ' ').concat('\n')

function parseSlot(text: string): (Tip & { generation: number }) | null {
  const match = /^(\d+) (\d+) ([0-9a-f]{64}) *\n$/.exec(text)
  return match === null
    ? null
    : { generation: Number(match[1]), next: Number(match[2]), prev: match[3] ?? '' }
}
