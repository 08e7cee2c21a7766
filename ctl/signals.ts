import { errnoOf, PuzzledError } from '../daemon/lib/errors.ts'

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

export interface SignalEars {
  /** A signal that could not be passed on. */
  failed(error: unknown): void
  /** A signal that reaches nobody any more. */
  tooLate(): void
}

/**
 * Signals to `puzzlectl` are meant for what it starts. One that comes before that runs is kept for it; one that comes when
 * it is over is only said. The second one before or after ends `puzzlectl` itself, as if nobody had listened.
 */
export class ForwardedSignals {
  readonly #ears: SignalEars
  #deliver: ((name: string) => Promise<unknown>) | null = null
  #kept: string | null = null
  #wasLate = false
  #isOver = false

  constructor(ears: SignalEars) {
    this.#ears = ears
    for (const name of FORWARDED) process.on(name, this.#take)
  }

  /** From now on there is somebody to hand them to. */
  passTo(deliver: (name: string) => Promise<unknown>): void {
    this.#deliver = deliver
    if (this.#kept !== null) this.#pass(deliver, this.#kept)
  }

  /** It has ended. */
  over(): void {
    this.#isOver = true
  }

  close(): void {
    for (const name of FORWARDED) process.off(name, this.#take)
  }

  readonly #take = (signal: NodeJS.Signals): void => {
    const name = signal.slice(3)
    if (this.#isOver) this.#late(signal)
    else if (this.#deliver !== null) this.#pass(this.#deliver, name)
    else if (this.#kept === null) this.#kept = name
    else this.#endBy(signal)
  }

  #pass(deliver: (name: string) => Promise<unknown>, name: string): void {
    deliver(name).catch((error: unknown) => {
      // It ended while the signal was on its way.
      if (hasEnded(error)) this.#late(`SIG${name}` as NodeJS.Signals)
      else this.#ears.failed(error)
    })
  }

  #late(signal: NodeJS.Signals): void {
    if (this.#wasLate) this.#endBy(signal)
    else this.#ears.tooLate()
    this.#wasLate = true
  }

  #endBy(signal: NodeJS.Signals): void {
    this.close()
    // By a signal the process ends on the spot: nobody else gives the terminal back.
    if (process.stdin.isTTY) process.stdin.setRawMode(false)
    process.kill(process.pid, signal)
  }
}

const hasEnded = (error: unknown): boolean =>
  (error instanceof PuzzledError && error.code === 'wrong-state') || errnoOf(error) === 'ESRCH'
