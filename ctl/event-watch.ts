import { BUS_NAME, MANAGER_INTERFACE } from '../daemon/contract/bus.ts'
import { structureOf } from '../daemon/contract/bus-values.ts'
import type { PuzzledEvent } from '../daemon/contract/events.ts'
import type { BusConnection } from '../daemon/lib/bus-connection.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'

const BUS = 'org.freedesktop.DBus'
export const OWNER_MATCH = `type='signal',sender='${BUS}',interface='${BUS}',member='NameOwnerChanged',arg0='${BUS_NAME}'`

/** Events as they arrive, from the moment of construction on. Only the daemon is believed: anybody can send a signal. */
export class EventWatch {
  readonly #waiting: PuzzledEvent[] = []
  readonly #remove: () => void
  #wake: (() => void) | undefined
  #stopped = false
  #gone = false

  constructor(connection: BusConnection, daemon: string) {
    this.#remove = connection.onSignal((message) => {
      if (message.sender === BUS && message.member === 'NameOwnerChanged')
        this.#lose(message.body ?? [], daemon)
      if (message.sender !== daemon || message.interface !== MANAGER_INTERFACE || message.member !== 'Event')
        return
      this.#waiting.push(structureOf<PuzzledEvent>(message.body?.[0]))
      this.#wake?.()
    })
    connection.onClose(() => this.#lose([BUS_NAME, daemon], daemon))
  }

  /** The next event, or undefined after `stop`. A daemon that went away sends none any more. */
  async next(): Promise<PuzzledEvent | undefined> {
    while (!this.#stopped && !this.#gone && this.#waiting.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    const event = this.#waiting.shift()
    if (event !== undefined || this.#stopped) return event
    throw new PuzzledError('bus-gone', 'The daemon or its bus went away', {
      hint: 'What agents wrote is kept; once it runs again: puzzlectl ls',
    })
  }

  #lose([name, owner]: readonly unknown[], daemon: string): void {
    if (name !== BUS_NAME || owner !== daemon) return
    this.#gone = true
    this.#wake?.()
  }

  readonly stop = (): void => {
    this.#stopped = true
    this.#remove()
    this.#wake?.()
  }
}
