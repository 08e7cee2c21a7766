import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BusConnection } from '../daemon/lib/bus-connection.ts'
import { FakeBus } from '../test/fakes/fake-bus.ts'
import { Liveness } from './liveness.ts'

let bus: FakeBus
let connection: BusConnection
beforeEach(async () => {
  bus = new FakeBus()
  const address = await bus.start()
  bus.onCall = (message) => bus.answer(message, 's', [':1.1'])
  connection = await BusConnection.connect(address)
})
afterEach(async () => {
  await connection.close()
  await bus.close()
})

const pings = (): number => bus.received.filter(({ member }) => member === 'Ping').length
const never = (): Promise<string> => new Promise(() => undefined)
const PATIENCE = 0.3

describe('a client that waits', () => {
  it('waits for as long as the other side answers pings, also with refusals', async () => {
    const live = new Liveness(connection, PATIENCE)
    live.follow(':1.7')
    bus.onCall = (message) =>
      bus.send({ type: 3, replySerial: message.serial, sender: ':1.7', errorName: 'a.b' })
    const slow = sleep(4 * PATIENCE * 1000, 'done at last')
    expect(await live.guard(slow)).toBe('done at last')
    expect(pings()).toBeGreaterThan(2)
    expect(bus.received.every(({ member, destination }) => member !== 'Ping' || destination === ':1.7')).toBe(
      true,
    )
  })

  it('is told when nothing comes any more, all that waits at once', async () => {
    const live = new Liveness(connection, PATIENCE)
    bus.onCall = () => undefined
    const codes = [never(), never()].map((work) =>
      live.guard(work).catch((error: { code: string }) => error.code),
    )
    expect(await Promise.all(codes)).toEqual(['daemon-not-answering', 'daemon-not-answering'])
    // One question is enough for somebody who does not answer.
    expect(pings()).toBe(1)
  })

  it('asks nobody when nobody waits, and after a loss waits anew', async () => {
    const live = new Liveness(connection, PATIENCE)
    expect(await live.guard(Promise.resolve('at once'))).toBe('at once')
    await expect(live.guard(Promise.reject(new Error('its own')))).rejects.toThrow('its own')
    await sleep(PATIENCE * 500)
    expect(pings()).toBe(0)
    bus.onCall = () => undefined
    await expect(live.guard(never())).rejects.toMatchObject({ code: 'daemon-not-answering' })
    expect(await live.guard(sleep(50, 'again'))).toBe('again')
  })

  it('closes a connection whose other side never does', async () => {
    bus.onCall = () => undefined
    const pending = connection.callBus('ListNames').catch((error: { code: string }) => error.code)
    await connection.close()
    expect(await pending).toBe('bus-gone')
  })
})
