import type { BusAction } from '../contract/bus.ts'
import { type BusConnection, BusError } from '../lib/bus-connection.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Caller } from './server.ts'

/** `challenge`: allowed to who proves that it is them, and nobody could be asked. */
export type PolkitAnswer = 'allowed' | 'denied' | 'challenge'

const NAME = 'org.freedesktop.PolicyKit1'
const AUTHORITY = {
  path: '/org/freedesktop/PolicyKit1/Authority',
  interface: 'org.freedesktop.PolicyKit1.Authority',
}
const ALLOW_INTERACTION = 1
/** Time for a person to find and type a password. */
const PATIENCE_MS = 120_000

/** What the bus answers where polkit is not installed; everything else that goes wrong is a refusal. */
const NOT_THERE = new Set(['NameHasNoOwner', 'ServiceUnknown', 'Spawn.ServiceNotFound'])

/**
 * polkit's word about a caller. No answer is no permission: an authority that hangs, dies or answers nonsense refuses,
 * and only one that is not there at all leaves the decision to groups.
 */
export class Polkit {
  readonly #connection: BusConnection
  readonly #patience: number
  #questions = 0

  constructor(connection: BusConnection, patience = PATIENCE_MS) {
    this.#connection = connection
    this.#patience = patience
  }

  async check(caller: Caller, action: BusAction): Promise<PolkitAnswer | null> {
    const authority = await this.#authority()
    if (authority === null) return null
    const question = `puzzled-${++this.#questions}`
    const asked = this.#connection.call({
      ...{ ...AUTHORITY, destination: authority, member: 'CheckAuthorization' },
      signature: '(sa{sv})sa{ss}us',
      body: [
        ['system-bus-name', [['name', ['s', caller.name]]]],
        `org.puzzled1.${action}`,
        [],
        caller.interactive === true ? ALLOW_INTERACTION : 0,
        question,
      ],
    })
    try {
      return answerOf(await this.#inTime(asked, authority, question))
    } catch (error) {
      if (error instanceof PuzzledError) throw error
      throw new PuzzledError('access-denied', `polkit did not answer: ${String(error)}`, {
        cause: error,
        hint: 'systemctl status polkit',
      })
    }
  }

  /** The connection that owns the name now, started when it can be. Asked by its own name, nobody else can answer. */
  async #authority(): Promise<string | null> {
    const owner = async (): Promise<string> =>
      String((await this.#connection.callBus('GetNameOwner', 's', [NAME]))[0])
    try {
      return await owner().catch(async () => {
        await this.#connection.callBus('StartServiceByName', 'su', [NAME, 0])
        return owner()
      })
    } catch (error) {
      if (!(error instanceof BusError)) throw error
      if (NOT_THERE.has(error.busName.replace('org.freedesktop.DBus.Error.', ''))) return null
      throw new PuzzledError('access-denied', `polkit cannot be reached: ${error.message}`, { cause: error })
    }
  }

  async #inTime(asked: Promise<unknown[]>, authority: string, question: string): Promise<unknown[]> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        this.#cancel(authority, question)
        reject(new Error(`no answer within ${this.#patience / 1000} s`))
      }, this.#patience)
    })
    try {
      return await Promise.race([asked, late])
    } finally {
      clearTimeout(timer)
      // Whatever comes of it now is of no interest.
      asked.catch(() => undefined)
    }
  }

  #cancel(destination: string, question: string): void {
    const member = 'CancelCheckAuthorization'
    this.#connection
      .call({ ...AUTHORITY, destination, member, signature: 's', body: [question] })
      .catch(() => undefined)
  }
}

/** `(bba{ss})`: authorised, a challenge, details. */
function answerOf([result]: readonly unknown[]): PolkitAnswer {
  if (!Array.isArray(result)) return 'denied'
  if (result[0] === true) return 'allowed'
  return result[1] === true ? 'challenge' : 'denied'
}
