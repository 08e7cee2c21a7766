import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { refuseDescriptors } from './refuse-descriptors.ts'

it('says so where a socket carries none anyway, or does not listen', async () => {
  const server = createServer()
  expect(refuseDescriptors(server)).toBe(false)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  expect(refuseDescriptors(server)).toBe(false)
  await new Promise((resolve) => server.close(resolve))
})
