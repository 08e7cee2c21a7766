import { marshall } from 'dbus-native/lib/message.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeBus } from '../../test/fakes/fake-bus.ts'
import { BusConnection, type BusMessage } from './bus-connection.ts'

let bus: FakeBus
let connection: BusConnection
beforeEach(async () => {
  bus = new FakeBus()
  connection = await BusConnection.connect(await bus.start())
})
afterEach(async () => {
  await bus.close()
})

const received = (count: number) => expect.poll(() => bus.received.length).toBe(count)

describe('an answer', () => {
  it('of somebody else than who was asked is none', async () => {
    bus.onCall = (message) => {
      bus.answer(message, 'u', [0], ':1.66')
      bus.answer(message, 'u', [1000])
    }
    expect(await connection.callBus('GetConnectionUnixUser', 's', [':1.2'])).toEqual([1000])
    const call = { destination: ':1.7', path: '/', interface: 'a.b', member: 'C' }
    bus.onCall = (message) => {
      bus.answer(message, 's', ['forged'])
      bus.answer(message, 's', ['forged'], ':1.8')
      bus.answer(message, 's', ['right'], ':1.7')
    }
    expect(await connection.call(call)).toEqual(['right'])
    const errorName = 'org.freedesktop.DBus.Error.NoReply'
    bus.onCall = ({ serial }) =>
      bus.send({ type: 3, replySerial: serial, sender: 'org.freedesktop.DBus', errorName })
    await expect(connection.call(call)).rejects.toMatchObject({ busName: errorName })
  })

  it('that cannot be read fails its call and no other', async () => {
    bus.onCall = (message) => bus.write(patched(message.serial))
    await expect(connection.callBus('ListNames')).rejects.toMatchObject({ code: 'internal' })
    bus.onCall = (message) => bus.answer(message, 's', ['still here'])
    expect(await connection.callBus('ListNames')).toEqual(['still here'])
  })

  it('cannot come any more when the bus is gone', async () => {
    const waiting = connection.callBus('ListNames')
    await received(1)
    await bus.close()
    await expect(waiting).rejects.toMatchObject({ code: 'bus-gone' })
    await expect(connection.callBus('ListNames')).rejects.toMatchObject({ code: 'bus-gone' })
    bus = new FakeBus()
  })
})

describe('a message', () => {
  const incoming: BusMessage[] = []
  beforeEach(() => {
    incoming.length = 0
    connection.onCall((message) => incoming.push(message))
  })

  it('that nobody can read spoils itself only', async () => {
    bus.write(unreadable())
    bus.send({ path: '/', member: 'Good', sender: ':1.2', signature: 's', body: ['x'] })
    await expect.poll(() => incoming.length).toBe(2)
    expect(() => incoming[0]?.body).toThrow(/999/)
    expect(incoming[1]?.body).toEqual(['x'])
  })

  it('that arrives in pieces, without a body or with a large one is whole', async () => {
    const bytes = marshall({ type: 1, serial: 9, path: '/', member: 'Slow', sender: ':1.2' })
    for (const byte of bytes) bus.write(Buffer.from([byte]))
    const text = 'x'.repeat(5 << 20)
    bus.send({ path: '/', member: 'Large', sender: ':1.2', signature: 's', body: [text] })
    await expect.poll(() => incoming.map(({ member }) => member)).toEqual(['Slow', 'Large'])
    expect(incoming[0]?.body).toEqual([])
    expect(incoming[1]?.bytes).toBe(text.length + 5)
    expect(incoming[1]?.body).toEqual([text])
  })

  it('that wants no reply gets none, and one that is too large is not sent', async () => {
    bus.send({ path: '/', member: 'Silent', sender: ':1.2', flags: 1 })
    bus.send({ path: '/', member: 'Loud', sender: ':1.2' })
    await expect.poll(() => incoming.length).toBe(2)
    const [silent, loud] = incoming
    if (silent === undefined || loud === undefined) throw new Error('They did not arrive')
    connection.reply(silent, 's', ['unheard'])
    connection.replyError(silent, 'a.b.C', 'unheard')
    const large = 'x'.repeat(31 << 20)
    expect(() => connection.reply(loud, 's', [large])).toThrow(expect.objectContaining({ code: 'too-large' }))
    await expect(connection.call({ ...NOBODY, signature: 's', body: [large] })).rejects.toMatchObject({
      code: 'too-large',
    })
    connection.reply(loud, 's', ['heard'])
    await received(1)
    expect(bus.received[0]).toMatchObject({ replySerial: loud.serial, body: ['heard'] })
  })

  it('of no protocol ends the connection with an error', async () => {
    const lost = new Promise<Error | null>((resolve) => connection.onClose(resolve))
    bus.write(Buffer.alloc(16, 0xff))
    expect(String(await lost)).toContain('no message')
  })
})

const NOBODY = { destination: ':1.2', path: '/', interface: 'a.b', member: 'C' }

const unreadable = (): Buffer => broken({ type: 1, path: '/', member: 'Bad', sender: ':1.2' })
const patched = (replySerial: number): Buffer =>
  broken({ type: 2, replySerial, sender: 'org.freedesktop.DBus' })

/** A body with a text that says to be longer than the message. */
function broken(message: Record<string, unknown>): Buffer {
  const bytes = marshall({ serial: 5, ...message, signature: 's', body: ['text'] })
  bytes.writeUInt32LE(999, bytes.length - 9)
  return bytes
}
