// pure
import type { Buffer } from 'node:buffer'

/** `Ctrl-]`, as telnet and machinectl have it. */
const KEY = 0x1d
const TIMES = 3
const WITHIN_MILLIS = 1000

export const DETACH_KEYS = 'Ctrl-] three times within a second'

/** Watches what is typed for the sequence that lets go of an agent. Everything up to its last key is passed on. */
export class DetachKeys {
  #pressed: number[] = []

  /** What the agent gets, and whether the sequence is complete. */
  type(bytes: Buffer, now: number): { pass: Buffer; detached: boolean } {
    for (const [at, byte] of bytes.entries()) {
      if (byte !== KEY) {
        this.#pressed = []
        continue
      }
      this.#pressed = [...this.#pressed.filter((time) => now - time <= WITHIN_MILLIS), now]
      if (this.#pressed.length >= TIMES) return { pass: bytes.subarray(0, at), detached: true }
    }
    return { pass: bytes, detached: false }
  }
}
