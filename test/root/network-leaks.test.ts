import { closeSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { armFailpoint } from '../../daemon/lib/failpoint.ts'
import { openNetwork } from '../../daemon/network/gate-network.ts'
import { prepareNetns } from '../../daemon/network/namespace.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, root } from '../tier/needs.ts'

const it = needs(root)
let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'puzzled-net-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** What this process holds; descriptors that nobody can look at any more are not counted. */
const held = (): string[] =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).replace(/\[\d+\]/, '')
      } catch {
        return 'gone'
      }
    })
    .filter((target) => /^socket|^net|queue|netlink/.test(target))

/** What this process holds and did not hold then. */
function moreThan(before: readonly string[]): string[] {
  const left = [...before]
  return held().filter((target) => {
    const at = left.indexOf(target)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

async function open(more: Parameters<typeof network>[1] = {}): Promise<unknown> {
  const { fd } = prepareNetns()
  try {
    const opened = await openNetwork({
      branch: 'leaky',
      network: network([rule('read')], more),
      directory,
      netns: fd,
      onEvent: () => undefined,
    })
    await opened.close()
    return undefined
  } catch (error) {
    return error
  } finally {
    closeSync(fd)
  }
}

const CREDENTIAL = {
  placeholder: 'PUZZLED-TOKEN-1',
  source: { kind: 'file', path: '/no/such/secret' } as const,
  hosts: ['api.example.com'],
  header: 'authorization',
  why: 'It cannot be read.',
}
const EXPOSED = { host: 'localhost', port: 4242, why: 'A port.' }

it.each([
  ['a secret that cannot be read', { credentials: [CREDENTIAL] }, undefined],
  ['a port that is exposed twice', { expose: [EXPOSED, EXPOSED] }, undefined],
  ['a port that is exposed and transparent', { expose: [EXPOSED], ports: [4242] }, undefined],
  ['a failure when everything listens', { expose: [EXPOSED] }, 'network.listening'],
] as const)('%s leaves no descriptor and no queue in use', async (_name, more, name) => {
  // What the first network makes and keeps for all.
  expect(await open()).toBeUndefined()
  const before = held()
  for (let n = 0; n < 3; n++) {
    const disarm =
      name === undefined
        ? undefined
        : armFailpoint(name, () => {
            throw new Error('armed')
          })
    expect(await open(more)).toBeInstanceOf(Error)
    disarm?.()
  }
  // What was closed goes when the loop comes to it.
  await expect.poll(() => moreThan(before), { timeout: 60_000 }).toEqual([])
  expect(await open()).toBeUndefined()
})
