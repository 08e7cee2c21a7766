import { combineErrors, errnoOf, PuzzledError } from './errors.ts'

type Step = { name: string; run: () => void | Promise<void> }

/**
 * Undo steps are registered on the line after the effect and run last-first; all of them run, all failures are
 * reported. `keep()` hands the effects over to the caller when the setup succeeded.
 */
export class UndoStack {
  #steps: Step[] = []

  push(name: string, run: () => void | Promise<void>): void {
    this.#steps.push({ name, run })
  }

  keep(): void {
    this.#steps = []
  }

  async unwind(): Promise<void> {
    const errors: unknown[] = []
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.run()
      } catch (error) {
        errors.push(new Error(`Cannot undo "${step.name}"`, { cause: error }))
      }
    }
    if (errors.length > 0) throw combineErrors('Cleaning up failed', errors)
  }

  /** Unwinds and answers what to throw: always the failure that was the reason, also where cleaning up failed as well. */
  async unwindAfter(reason: unknown): Promise<unknown> {
    try {
      await this.unwind()
      return reason
    } catch (failures) {
      return withFailures(reason, failures)
    }
  }
}

function withFailures(reason: unknown, failures: unknown): Error {
  const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))
  const message = `${text(reason)}; cleaning up failed as well: ${text(failures)}`
  const cause = new AggregateError([reason, failures], message)
  if (reason instanceof PuzzledError) {
    const { code, hint, data } = reason
    return new PuzzledError(code, message, {
      cause,
      ...(hint === undefined ? {} : { hint }),
      ...(data === undefined ? {} : { data }),
    })
  }
  const code = errnoOf(reason)
  return Object.assign(new Error(message, { cause }), code === undefined ? {} : { code })
}
