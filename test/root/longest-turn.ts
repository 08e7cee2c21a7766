import { addressOf, syscall } from '../../daemon/kernel/ffi.ts'
import { NR } from '../../daemon/kernel/uapi/index.ts'

const RUSAGE_THREAD = 1
const LOOK_MILLIS = 5

/** Milliseconds of the processor that this thread has had: they do not pass while others have it. */
function threadMillis(): number {
  const usage = Buffer.alloc(144)
  // SAFETY: the kernel writes a struct rusage, which has 144 bytes, during the call.
  syscall('getrusage', NR.getrusage, RUSAGE_THREAD, addressOf(usage))
  const time = (at: number): number =>
    Number(usage.readBigInt64LE(at)) * 1e3 + Number(usage.readBigInt64LE(at + 8)) / 1e3
  return time(0) + time(16)
}

/**
 * How much of the processor one turn of the event loop took at most: whoever else is served waited for that long. It is
 * not time that passed, so a machine with other work changes little in it.
 */
export class LongestTurn {
  #last = threadMillis()
  #longest = 0
  readonly #timer = setInterval(() => this.#look(), LOOK_MILLIS)

  end(): number {
    this.#look()
    clearInterval(this.#timer)
    return Math.round(this.#longest)
  }

  #look(): void {
    const now = threadMillis()
    this.#longest = Math.max(this.#longest, now - this.#last)
    this.#last = now
  }
}
