import { PuzzledError } from './errors.ts'
import type { TellProgress } from './progress.ts'
import { type Answerer, decodeError, encodeError, type Link } from './worker-link.ts'
import type { Ask, Verbs } from './worker-side.ts'

/**
 * The verbs of a worker on the calling thread, for a process that does one thing and ends: starting a thread costs more
 * than most of what it would do. Calls run one after the other, as there, and errors look the same.
 */
export class InlineLink implements Link {
  readonly #load: () => Promise<Verbs>
  #tail: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(load: () => Promise<Verbs>) {
    this.#load = load
  }

  call(
    verb: string,
    argument: unknown,
    answer?: Answerer,
    tell: TellProgress = () => undefined,
  ): Promise<unknown> {
    const result = this.#tail.then(() => this.#run(verb, argument, answer, tell))
    this.#tail = result.catch(() => undefined)
    return result
  }

  async #run(
    verb: string,
    argument: unknown,
    answer: Answerer | undefined,
    tell: TellProgress,
  ): Promise<unknown> {
    if (this.#closed) throw new PuzzledError('internal', 'The store was closed before its turn came')
    const work = (await this.#load())[verb]
    if (work === undefined) throw new PuzzledError('internal', `There is no verb "${verb}"`)
    try {
      const ask: Ask = async (what, about) => {
        if (answer === undefined)
          throw new PuzzledError('internal', `"${verb}" asked "${what}", which nobody answers`)
        await answer(what, about)
      }
      return await work(argument as never, ask, tell)
    } catch (error) {
      throw decodeError(encodeError(error))
    }
  }

  /** Waits for the call that has begun; those behind it are refused. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#tail
  }
}
