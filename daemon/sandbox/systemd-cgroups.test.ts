import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { scopesOfSystemd } from './systemd-cgroups.ts'

/** A bus on which nobody answers, or somebody does. */
function bus(call: () => Promise<unknown[]>) {
  const seen = { closed: 0 }
  const connect = async () => ({ call, close: async () => void seen.closed++ })
  return { seen, start: scopesOfSystemd(connect, 20) }
}

it('a systemd that does not answer is an error, and the connection is closed', async () => {
  const { seen, start } = bus(() => new Promise(() => undefined))
  await expect(start('puzzle-x.scope', 1, 'x', {})).rejects.toMatchObject({
    code: 'start-failed',
    message: 'systemd did not answer within 0.02 s about puzzle-x.scope',
  })
  expect(seen.closed).toBe(1)
})

it('an answer ends the wait, and a refusal is what it says', async () => {
  const good = bus(async () => [])
  await good.start('puzzle-x.scope', 1, 'x', {})
  expect(good.seen.closed).toBe(1)
  const bad = bus(() => Promise.reject(new Error('no such slice')))
  await expect(bad.start('puzzle-x.scope', 1, 'x', {})).rejects.toThrow('no such slice')
})

it('a daemon of another bus asks the systemd of the machine', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'puzzled-other-bus-'))
  let asked = 0
  const other = createServer((socket) => {
    asked++
    socket.destroy()
  }).listen(join(folder, 'socket'))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    other.close()
    rmSync(folder, { recursive: true })
  })
  await once(other, 'listening')
  vi.stubEnv('DBUS_SYSTEM_BUS_ADDRESS', `unix:path=${join(folder, 'socket')}`)
  // Nowhere the name of a unit: also where the answer comes from systemd it is a refusal.
  await expect(scopesOfSystemd()('no unit', process.pid, '', {})).rejects.toThrow()
  expect(asked).toBe(0)
})
