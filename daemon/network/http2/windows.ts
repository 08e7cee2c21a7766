import { CODE, Http2Fault } from './fault.ts'

/** What both ends begin with, before anybody says anything else. */
export const FIRST_WINDOW = 65_535
const MOST = 2 ** 31 - 1

/** How much the agent may still send here, and when it is told that it may send more. */
export class InWindow {
  readonly #size: number
  #left: number
  #owed = 0

  constructor(size: number) {
    this.#size = size
    this.#left = size
  }

  /** False: more than it may. */
  take(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }

  /** So many bytes were read; what to tell the agent, not each time. */
  give(bytes: number): number {
    this.#owed += bytes
    if (this.#owed * 2 < this.#size) return 0
    const told = this.#owed
    this.#owed = 0
    this.#left += told
    return told
  }
}

/** How much may still be sent to the agent. Below nothing where it has changed its mind. */
export class OutWindow {
  #left: number

  constructor(left: number) {
    this.#left = left
  }

  get left(): number {
    return this.#left
  }

  sent(bytes: number): void {
    this.#left -= bytes
  }

  /** False: more than there can be. */
  grow(bytes: number): boolean {
    this.#left += bytes
    return this.#left <= MOST
  }
}

/** The settings of the agent that matter to somebody who answers. */
export function initialWindowIn(settings: Buffer, before: number): number {
  if (settings.length % 6 !== 0) throw new Http2Fault(CODE.FRAME_SIZE_ERROR, 'Settings are cut off')
  let window = before
  for (let at = 0; at < settings.length; at += 6) {
    const [name, value] = [settings.readUInt16BE(at), settings.readUInt32BE(at + 2)]
    if (name === 2 && value > 1) throw new Http2Fault(CODE.PROTOCOL_ERROR, 'ENABLE_PUSH is neither 0 nor 1')
    if (name === 4 && value > MOST) throw new Http2Fault(CODE.FLOW_CONTROL_ERROR, 'A window is too large')
    if (name === 5 && (value < 16_384 || value > 16_777_215))
      throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A frame size that cannot be')
    if (name === 4) window = value
  }
  return window
}
