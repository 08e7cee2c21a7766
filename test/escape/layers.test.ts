import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { run } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, parseReport, startOutside } from './attack.ts'
import { branchFor } from './harness.ts'
import { LAYERS, type Layer, without } from './without.ts'

const runnable = root ?? program('gcc')
const check = needs(runnable)
const DOCUMENT = new URL('../../docs/threat-model.md', import.meta.url)
/** A place outside of every directory that agents get of their own; the room has its own here. */
const OUTSIDE = '/srv'
const ABSTRACT = 'puzzled-layers'

let server: Server | undefined
let port = 0
let neighbour: ReturnType<typeof startOutside> | undefined
let services: ReturnType<typeof startOutside> | undefined

beforeAll(async () => {
  if (runnable !== undefined) return
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'srv', OUTSIDE])
  writeFileSync(join(OUTSIDE, 'file'), 'everybody may write here\n')
  chmodSync(join(OUTSIDE, 'file'), 0o666)
  copyFileSync('/bin/sh', join(OUTSIDE, 'tool'))
  server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  port = address !== null && typeof address === 'object' ? address.port : 0
  services = startOutside([attack('listen'), 'stream', join(OUTSIDE, 'service.sock'), `@${ABSTRACT}`])
  while (!services.output().includes('ready')) await sleep(10)
  neighbour = startOutside([
    'setpriv',
    '--reuid=1000',
    '--regid=1000',
    '--clear-groups',
    '/bin/sleep',
    '1000',
  ])
})

afterAll(async () => {
  for (const started of [services, neighbour]) {
    started?.child.kill()
    await started?.ended
  }
  await new Promise((resolve) => (server === undefined ? resolve(null) : server.close(resolve)))
  if (runnable === undefined) execFileSync('umount', [OUTSIDE])
})

/** The acts of `attacks/layer.c`: what is tried, in words, and on what. */
const ACTS: readonly { act: string; words: string; on: () => string }[] = [
  { act: 'read', words: 'read a file outside', on: () => join(OUTSIDE, 'file') },
  { act: 'write', words: 'write a file outside that everybody may write', on: () => join(OUTSIDE, 'file') },
  { act: 'execute', words: 'execute a program outside', on: () => join(OUTSIDE, 'tool') },
  { act: 'socket', words: 'connect to a service by its path', on: () => join(OUTSIDE, 'service.sock') },
  { act: 'abstract', words: 'connect to a service by an abstract name', on: () => ABSTRACT },
  { act: 'tcp', words: 'connect to a TCP service of the host', on: () => String(port) },
  { act: 'packet', words: 'send raw packets', on: () => '-' },
  { act: 'kill', words: 'signal a process of the same user', on: () => String(neighbour?.child.pid) },
  {
    act: 'trace',
    words: 'read the memory of a process of the same user',
    on: () => String(neighbour?.child.pid),
  },
  { act: 'mount', words: 'mount a filesystem', on: () => '/tmp' },
  { act: 'userns', words: 'mount a filesystem in a user namespace of its own', on: () => '/tmp' },
  { act: 'device', words: 'make a device node', on: () => 'made-device' },
]

/** Where one layer alone stands between the act and its success, and what would be the second. */
const ALONE: Readonly<Record<string, Layer>> = {
  // Landlock judges connections by path from ABI 9 (Linux 7.1).
  socket: 'mounts',
}

async function results(off: readonly Layer[]): Promise<string[]> {
  const launcher = new Launcher({ planner: without(off) })
  const found: string[] = []
  for (const { act, on } of ACTS) {
    const branch = branchFor()
    copyFileSync(attack('layer'), join(branch.base, 'layer'))
    const { output, errors } = await run(launcher, branch, ['./layer', act, on()])
    found.push(parseReport(output)[act] ?? `nothing (${errors})`)
  }
  return found
}

check('with every layer off, every act succeeds', async () => {
  const found = await results(LAYERS)
  expect(Object.fromEntries(ACTS.map(({ act }, index) => [act, found[index]]))).toEqual(
    Object.fromEntries(ACTS.map(({ act }) => [act, 'OK'])),
  )
})

check('with any one layer off, another one stops each act', async () => {
  const columns = [await results([])]
  for (const layer of LAYERS) columns.push(await results([layer]))
  for (const [row, { act }] of ACTS.entries())
    for (const [column, layer] of ['none', ...LAYERS].entries()) {
      const open = columns[column]?.[row] === 'OK'
      expect([act, layer, open]).toEqual([act, layer, ALONE[act] === layer])
    }
  const table = [
    `| what the agent tries | all on | ${LAYERS.map((layer) => `no ${layer}`).join(' | ')} |`,
    `|---|---|${LAYERS.map(() => '---').join('|')}|`,
    ...ACTS.map(({ words }, row) => `| ${words} | ${columns.map((column) => column[row]).join(' | ')} |`),
  ].join('\n')
  const document = readFileSync(DOCUMENT, 'utf8')
  const written = document.replace(/(<!-- layers -->\n)[\s\S]*?(\n<!-- end -->)/, `$1${table}$2`)
  if (process.env.PUZZLED_WRITE_DOCS !== undefined) writeFileSync(DOCUMENT, written)
  else expect(written, 'docs/threat-model.md is stale: run with PUZZLED_WRITE_DOCS=1').toBe(document)
})
