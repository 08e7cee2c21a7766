import { PassThrough, type Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { OutputHub } from './output-hub.ts'

const taken = (stream: Readable): string => (stream.read() as Buffer | null)?.toString() ?? ''

it('gives late readers the last of what was written and then everything', async () => {
  const source = new PassThrough()
  const hub = new OutputHub(source)
  source.write('early ')
  await setImmediate()
  const late = hub.attach()
  source.write('later')
  await setImmediate()
  expect(taken(late)).toBe('early later')
  expect(taken(hub.first)).toBe('early later')
  source.end()
  await setImmediate()
  expect(late.readableEnded || late.read() === null).toBe(true)
})

it('keeps a bounded backlog', async () => {
  const source = new PassThrough()
  const hub = new OutputHub(source)
  hub.first.resume()
  for (let line = 0; line < 300; line++) {
    source.write(Buffer.alloc(1024, 'x'))
    await setImmediate()
  }
  expect(taken(hub.attach()).length).toBeLessThanOrEqual(64 * 1024)
})

it('lets the first reader hold the source back, and nobody else', async () => {
  const source = new PassThrough()
  const hub = new OutputHub(source)
  const late = hub.attach()
  late.on('error', () => undefined)
  for (let round = 0; round < 200; round++) {
    source.write(Buffer.alloc(64 * 1024))
    await setImmediate()
  }
  expect(source.isPaused()).toBe(true)
  expect(late.destroyed).toBe(false)
  hub.first.resume()
  for (let round = 0; round < 400; round++) await setImmediate()
  expect(late.destroyed).toBe(true)
  expect(source.isPaused()).toBe(false)
})

it('flows on when the first reader goes away', async () => {
  const source = new PassThrough()
  const hub = new OutputHub(source)
  hub.first.destroy()
  for (let round = 0; round < 50; round++) {
    source.write(Buffer.alloc(64 * 1024))
    await setImmediate()
  }
  expect(source.isPaused()).toBe(false)
})
