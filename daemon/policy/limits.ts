import { z } from 'zod'
import { PuzzledError } from '../lib/errors.ts'
import { KeyLock } from '../lib/key-lock.ts'
import type { RecordFiles } from './record-files.ts'

const schema = z.strictObject({
  version: z.literal(1),
  uses: z.array(z.strictObject({ rule: z.string(), commit: z.string(), at: z.int().min(0) })),
})

type Uses = z.output<typeof schema>['uses']

/** Uses older than this are of no interest to any limit that can be written. */
const KEEP_SECONDS = 31 * 24 * 3600

/**
 * How often the rules of the action policy were used. Durable, so that neither a restart nor a crash gives anybody a
 * new allowance; counted once per commit, however often the commit is tried.
 */
export class LimitLedger {
  readonly #files: RecordFiles
  readonly #path: string
  readonly #now: () => Date
  readonly #lock = new KeyLock<'all'>()

  constructor(files: RecordFiles, path: string, now: () => Date) {
    this.#files = files
    this.#path = path
    this.#now = now
  }

  /** Throws `record-damaged` when the record cannot be understood: an unknown use is not no use. */
  async read(): Promise<(rule: string, seconds: number) => number> {
    const uses = await this.#load()
    const now = this.#now().getTime()
    // A use that lies in the future (the clock was set back) counts: time is no way around a limit.
    return (rule, seconds) => uses.filter((use) => use.rule === rule && use.at > now - seconds * 1000).length
  }

  /** Counts one use of each rule by this commit. Idempotent; durable when it resolves. */
  async count(rules: readonly string[], commit: string): Promise<void> {
    if (rules.length === 0) return
    await this.#lock.run('all', async () => {
      const uses = await this.#load()
      const at = this.#now().getTime()
      const fresh = rules.filter((rule) => !uses.some((use) => use.rule === rule && use.commit === commit))
      if (fresh.length === 0) return
      const kept = uses.filter((use) => use.at > at - KEEP_SECONDS * 1000)
      const next = { version: 1, uses: [...kept, ...fresh.map((rule) => ({ rule, commit, at }))] }
      await this.#files.writeRecord(this.#path, Buffer.from(`${JSON.stringify(next)}\n`))
    })
  }

  async #load(): Promise<Uses> {
    const bytes = await this.#files.read(this.#path)
    if (bytes === null) return []
    try {
      return schema.parse(JSON.parse(bytes.toString('utf8'))).uses
    } catch (error) {
      throw new PuzzledError('record-damaged', `Limit record "${this.#path}" cannot be understood`, {
        cause: error,
      })
    }
  }
}
