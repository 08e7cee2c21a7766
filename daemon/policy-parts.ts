import type { Approvals, Differ, Gate } from './agent/ports.ts'
import type { OpenedPolicy } from './policy/open.ts'

/**
 * The policy side of one store. Schemas, parsers and the decision log are loaded by the first changeset that is to be
 * judged: an agent that changed nothing asks none of them, and loading them would take longer than it ran.
 */
export class PolicyParts {
  readonly #open: () => Promise<OpenedPolicy>
  #opened: Promise<OpenedPolicy> | undefined

  constructor(root: string, differ: Pick<Differ, 'content'>, now: () => Date, workers?: number) {
    this.#open = async () => {
      const { openPolicy } = await import('./policy/open.ts')
      return openPolicy({
        root,
        now,
        contents: async (record, change, which, limit) => {
          const { before, after } = await differ.content(record, change.base, change.path, limit, null)
          return (which === 'new' ? after : before)?.bytes ?? null
        },
        ...(workers === undefined ? {} : { workers }),
      })
    }
  }

  /** Loads everything now. A daemon does: its own files may be replaced by an upgrade while it runs. */
  async load(): Promise<OpenedPolicy> {
    this.#opened ??= this.#open()
    try {
      return await this.#opened
    } catch (error) {
      // The next one tries again: the disk may have room by then.
      this.#opened = undefined
      throw error
    }
  }

  readonly gate: Gate = {
    evaluate: async (...args) => (await this.load()).gate.evaluate(...args),
    consume: async (...args) => (await this.load()).judge.consume(...args),
  }

  readonly approvals: Approvals = {
    request: async (...args) => (await this.load()).approvals.request(...args),
    decide: async (...args) => (await this.load()).approvals.decide(...args),
    check: async (...args) => (await this.load()).approvals.check(...args),
    consume: async (...args) => (await this.load()).approvals.consume(...args),
  }

  /** Reads policies again: all of them, or none. */
  async reload(): Promise<void> {
    const { reloadPolicies } = await import('./policy/reload.ts')
    await reloadPolicies(await this.load())
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined)
    await opened?.gate.close()
  }
}
