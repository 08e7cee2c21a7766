import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'
import { noTypist, typing } from './typist.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const { here, it } = onBus('each', noTypist, program('script'))

/**
 * Stands in for ssh to a machine with a daemon: with `-t` what runs there has a terminal of its own, as there; the bus is
 * known to that side only. With a real sshd: remote.test.ts.
 */
const SSH = (bin: string, bus: string): string => `#!/bin/sh
terminal=$1
while [ "$1" != -- ]; do shift; done
shift 2
export PATH='${bin}':"$PATH" DBUS_SYSTEM_BUS_ADDRESS='${bus}'
[ "$terminal" = -t ] && exec script --quiet --return --command "$*" /dev/null
exec sh -c "$*"
`

let bin: string
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'puzzled-ssh-'))
  if (here.address === undefined) return
  const programs = {
    ssh: SSH(bin, here.address),
    puzzlectl: `#!/bin/sh\nexec '${process.execPath}' '${puzzlectl}' "$@"\n`,
  }
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(bin, name), text, { mode: 0o755 })
})
afterEach(() => rmSync(bin, { recursive: true }))

const remote = (...args: string[]): string[] => [
  ...['env', '-u', 'DBUS_SYSTEM_BUS_ADDRESS', `PATH=${bin}:${process.env.PATH}`, 'TERM=xterm'],
  ...[process.execPath, puzzlectl, '--host', 'there', ...args],
]
const there = (...args: string[]) => here.exec(WHO.root, remote(...args))
const detach = (script: string, ...options: string[]) =>
  there('run', '--base', here.project, '--detach', ...options, '--', 'sh', '-c', script)
const state = async (id: string): Promise<unknown> =>
  JSON.parse((await there('show', id, '--json')).out).state

it('a person attaches to an agent on another machine, types, lets go, and the agent goes on', async () => {
  const script = 'stty size; echo ready; while read -r line; do echo "got $line"; done'
  expect(await detach(script, '--tty', '--name', 'far')).toMatchObject({ status: 0, err: '' })
  const keys = ['33 111|ready', 'hello\\n', 'got hello', '\\x1d\\x1d\\x1d', 'detached']
  const { out } = await here.exec(WHO.root, typing(keys, ...remote('attach', 'far')))
  expect(out).toContain('the agent goes on')
  expect(out).toContain('status 0')
  expect(await state('far')).toBe('running')
})

it('without a terminal what the agent writes arrives, and its exit status', async () => {
  const script = 'read -r line; echo "got $line"; exit 7'
  expect(await detach(script, '--name', 'piped')).toMatchObject({ status: 0 })
  const attach = remote('attach', 'piped').map((word) => `'${word}'`)
  const { status, out } = await here.exec(WHO.root, ['sh', '-c', `echo hello | ${attach.join(' ')}`])
  expect([status, out]).toEqual([7, expect.stringContaining('got hello')])
})
