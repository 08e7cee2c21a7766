import { closeSync, fchmodSync, openSync } from 'node:fs'
import { appendFile, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DenialRow } from './contract/denial.ts'
import type { PuzzledEvent } from './contract/events.ts'
import { isTerminal } from './contract/states.ts'
import { errnoOf } from './lib/errors.ts'

/** In the branch's directory; the agent finds it at `DENIALS_PATH`. */
const NAME = 'denials.jsonl'
/** An agent that is refused in a loop must not fill the store. */
const MOST_BYTES = 256 << 10

interface Writing {
  bytes: number | null
  full: boolean
  last: Promise<void>
}

/**
 * What each branch was refused, and why: one JSON line per denial, appended when it happens. For people in `show`, and
 * for the agent itself, who can read it and do better. Nobody relies on it being complete: the audit log is elsewhere.
 */
export class DenialFiles {
  readonly #directoryOf: (id: string) => string
  readonly #complain: (branch: string) => (error: unknown) => void
  readonly #writing = new Map<string, Writing>()

  constructor(directoryOf: (id: string) => string, complain: (branch: string) => (error: unknown) => void) {
    this.#directoryOf = directoryOf
    this.#complain = complain
  }

  /** Exists when the agent starts, so that it can be mounted. */
  prepare(id: string): string {
    const path = this.#pathOf(id)
    const file = openSync(path, 'a', 0o644)
    try {
      // Whatever the umask of whoever runs us: the agent is to read it.
      fchmodSync(file, 0o644)
    } finally {
      closeSync(file)
    }
    return path
  }

  /** Takes every event; only denials are written. */
  take(event: PuzzledEvent): void {
    if (event.kind === 'state' && isTerminal(event.to)) this.#writing.delete(event.branch)
    if (event.kind !== 'denial' || event.branch === '') return
    const { branch, kind: _kind, ...row } = event
    const writing = this.#writing.get(branch) ?? { bytes: null, full: false, last: Promise.resolve() }
    this.#writing.set(branch, writing)
    if (writing.full) return
    writing.last = writing.last.then(() => this.#append(branch, writing, row)).catch(this.#complain(branch))
  }

  /** Oldest first. A line that is being written at this moment is left out. */
  async list(id: string): Promise<readonly DenialRow[]> {
    await this.#writing.get(id)?.last
    return readDenials(this.#directoryOf(id))
  }

  async #append(branch: string, writing: Writing, row: DenialRow): Promise<void> {
    const path = this.#pathOf(branch)
    writing.bytes ??= (await orNull(stat(path)))?.size ?? 0
    if (writing.full) return
    const line = `${JSON.stringify(row)}\n`
    writing.full = writing.bytes + line.length > MOST_BYTES
    const written = writing.full ? `${JSON.stringify(lastRow(row))}\n` : line
    writing.bytes += Buffer.byteLength(written)
    // A branch that is gone has nobody to tell.
    await orNull(appendFile(path, written, { mode: 0o644 }))
  }

  #pathOf(id: string): string {
    return join(this.#directoryOf(id), NAME)
  }
}

/** The list in a branch's directory, whoever writes it. */
export async function readDenials(directory: string): Promise<readonly DenialRow[]> {
  const text = await orNull(readFile(join(directory, NAME), 'utf8'))
  const lines = (text ?? '').split('\n').slice(0, -1)
  return lines.flatMap((line) => rowOf(line) ?? [])
}

/** A full disk or a power cut leaves half a line, and what is appended later stands behind it: the rest is still good. */
function rowOf(line: string): DenialRow | null {
  try {
    return JSON.parse(line) as DenialRow
  } catch {
    return null
  }
}

const lastRow = ({ time, layer }: DenialRow): DenialRow => ({
  time,
  layer,
  subject: '',
  rule: 'more',
  message: 'Further denials are not listed here',
})

const orNull = <Result>(work: Promise<Result>): Promise<Result | null> =>
  work.catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  })
