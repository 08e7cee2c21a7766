import { setTimeout as delay } from 'node:timers/promises'
import { receiveDescriptor } from '../kernel/descriptor-passing.ts'
import { type Question, SeccompListener } from '../kernel/seccomp-notify.ts'

/**
 * Counts the programs that a branch starts and holds those that are over the limit: each `execve` waits for an answer.
 * A held one is not refused, so that an extension loses nothing. Only the number of calls is judged, never their
 * arguments, which the asker could change; searching PATH counts each attempt. When the daemon dies, every further
 * attempt fails with ENOSYS.
 */
export class ExecGate {
  #limit: number
  #count = 0
  #begun = false
  readonly #held: { listener: SeccompListener; question: Question }[] = []
  readonly #listeners = new Set<SeccompListener>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Attempts so far, held ones included. */
  get count(): number {
    return this.#count
  }

  /** Somebody waits for a larger limit, inside the kernel. */
  get holds(): boolean {
    return this.#held.length > 0
  }

  /**
   * The agent's first program runs. Until then nothing is held: nobody meters the branch yet, and the start would wait for an
   * extension that nobody is asked for.
   */
  begin(): void {
    this.#begun = true
  }

  /** A larger limit lets the held ones go on, in their order. */
  setLimit(limit: number): void {
    this.#limit = limit
    while (this.#held.length > 0 && this.#count - this.#held.length < limit) {
      const [next] = this.#held.splice(0, 1)
      // Whoever was killed while it was held has started nothing.
      if (next !== undefined && !next.listener.letContinue(next.question.id)) this.#count--
    }
  }

  /** Takes over a listener. Its first question is the start of init, which is ours and does not count. */
  adopt(descriptor: number): void {
    const listener = new SeccompListener(descriptor)
    this.#listeners.add(listener)
    let first = true
    listener.listen(
      (question) => {
        if (!first) this.#ask(listener, question)
        else if (this.#listeners.has(listener)) listener.letContinue(question.id)
        first = false
      },
      () => this.#drop(listener),
    )
  }

  close(): void {
    for (const listener of [...this.#listeners]) this.#drop(listener)
  }

  #ask(listener: SeccompListener, question: Question): void {
    // Closed since the question was received: its descriptor may be another's by now.
    if (!this.#listeners.has(listener)) return
    this.#count++
    if (this.#begun && this.#count > this.#limit) this.#held.push({ listener, question })
    else listener.letContinue(question.id)
  }

  #drop(listener: SeccompListener): void {
    if (!this.#listeners.delete(listener)) return
    listener.close()
    for (let at = this.#held.length - 1; at >= 0; at--)
      if (this.#held[at]?.listener === listener) {
        this.#held.splice(at, 1)
        this.#count--
      }
  }
}

/**
 * Waits for the listener that the child sends right before it executes init, and answers from then on. The child sleeps
 * in that call until it is answered, so this must run beside the spawn and not after it.
 */
export async function adoptFrom(socket: number, gate: ExecGate, spawned: Promise<unknown>): Promise<void> {
  let over = false
  const end = (): void => {
    over = true
  }
  spawned.then(end, end)
  while (!over) {
    const descriptor = receiveDescriptor(socket)
    if (descriptor !== undefined) {
      gate.adopt(descriptor)
      return
    }
    await delay(1)
  }
}
