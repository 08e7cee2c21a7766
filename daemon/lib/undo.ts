import { combineErrors } from './errors.ts'

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
}
