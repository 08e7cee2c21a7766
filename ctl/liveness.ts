import { type BusConnection, PEER_PATH } from '../daemon/lib/bus-connection.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'

/** Of silence, for each of which the other side was asked. */
const TICKS = 6
const PATIENCE_SECONDS = 30

/** How long somebody may say nothing at all, by PUZZLED_PATIENCE. */
export function patienceSeconds(text = process.env.PUZZLED_PATIENCE): number {
  const seconds = Number(text)
  return text !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : PATIENCE_SECONDS
}

/**
 * Tells waiting from hanging. A call may rightly last for hours; whoever serves it answers a ping meanwhile. One that says
 * nothing for a whole patience (a stopped daemon, a wedged bus, a network that is gone) ends everything that waits.
 * Ticks are counted, not time: a client that stood still itself has not waited.
 */
export class Liveness {
  readonly #connection: BusConnection
  readonly #patience: number
  readonly #waiting = new Set<(error: Error) => void>()
  #peer = 'org.freedesktop.DBus'
  #timer: NodeJS.Timeout | undefined
  #silent = 0
  #heard = 0
  #asked = false

  constructor(connection: BusConnection, seconds = patienceSeconds()) {
    this.#connection = connection
    this.#patience = seconds
  }

  /** From now on life is that of this connection; before, it is that of the bus. */
  follow(peer: string): void {
    this.#peer = peer
  }

  /** The same result, or `daemon-not-answering` when nobody is there who could still bring it. */
  async guard<Result>(work: Promise<Result>): Promise<Result> {
    let lose: (error: Error) => void = () => undefined
    const lost = new Promise<never>((_resolve, reject) => {
      lose = reject
    })
    this.#waiting.add(lose)
    this.#timer ??= this.#begin()
    try {
      return await Promise.race([work, lost])
    } finally {
      this.#waiting.delete(lose)
      if (this.#waiting.size === 0) this.#end()
      // What comes of it after all is of no interest.
      work.catch(() => undefined)
    }
  }

  #begin(): NodeJS.Timeout {
    this.#silent = 0
    this.#heard = this.#connection.heard
    return setInterval(() => this.#tick(), (this.#patience * 1000) / TICKS)
  }

  #end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#silent = this.#connection.heard === this.#heard ? this.#silent + 1 : 0
    this.#heard = this.#connection.heard
    if (this.#silent >= TICKS) for (const lose of this.#waiting) lose(this.#error())
    else this.#ask()
  }

  /** Any answer is one, also a refusal. */
  #ask(): void {
    if (this.#asked) return
    this.#asked = true
    const done = (): void => {
      this.#asked = false
    }
    const face = 'org.freedesktop.DBus.Peer'
    this.#connection
      .call({ destination: this.#peer, path: PEER_PATH, interface: face, member: 'Ping' })
      .then(done, done)
  }

  #error(): PuzzledError {
    return new PuzzledError(
      'daemon-not-answering',
      `The daemon has not answered for ${this.#patience} s, not even to say that it is there`,
      {
        hint: 'What was asked of it may still happen; once it answers: puzzlectl ls. See: systemctl status puzzled dbus. A slow machine: PUZZLED_PATIENCE=SECONDS',
      },
    )
  }
}
