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
  readonly #counted: () => void
  readonly #held: { listener: SeccompListener; question: Question }[] = []
  readonly #listeners = new Set<SeccompListener>()

  /** `counted` is called after each program: the meter looks at once instead of at its next turn. */
  constructor(limit: number, counted: () => void = () => undefined) {
    this.#limit = limit
    this.#counted = counted
  }

  /** Attempts so far, held ones included. */
  get count(): number {
    return this.#count
  }

  /** A larger limit lets the held ones go on, in their order. */
  setLimit(limit: number): void {
    this.#limit = limit
    const room = Math.max(0, limit - (this.#count - this.#held.length))
    for (const { listener, question } of this.#held.splice(0, room)) listener.letContinue(question.id)
  }

  /** Takes over a listener. Its first question is the start of init, which is ours and does not count. */
  adopt(descriptor: number): void {
    const listener = new SeccompListener(descriptor)
    this.#listeners.add(listener)
    let first = true
    listener.listen(
      (question) => {
        if (first) listener.letContinue(question.id)
        else this.#ask(listener, question)
        first = false
      },
      () => this.#drop(listener),
    )
  }

  close(): void {
    for (const listener of [...this.#listeners]) this.#drop(listener)
  }

  #ask(listener: SeccompListener, question: Question): void {
    this.#count++
    if (this.#count > this.#limit) this.#held.push({ listener, question })
    else listener.letContinue(question.id)
    this.#counted()
  }

  #drop(listener: SeccompListener): void {
    if (this.#listeners.delete(listener)) listener.close()
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
