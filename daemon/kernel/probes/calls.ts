import { closeSync } from 'node:fs'
import type { SpawnOp, SpawnRequest } from '../../contract/spawn.ts'
import { spawn } from '../clone.ts'
import { waitPidfd } from '../pidfd.ts'
import { O_WRONLY } from '../uapi/index.ts'

/** Probes run their calls in a child of the trampoline: whatever they restrict or mount ends with it. */

export const text = (value: string): Buffer => Buffer.from(`${value}\0`)

export const op = (call: string, args: SpawnOp['args'], more: Partial<SpawnOp> = {}): SpawnOp => ({
  name: call,
  call,
  args,
  expect: 'ok',
  ...more,
})

/** Maps our uid and gid to 0 of a new user namespace, which needs no privilege. */
export const mapOwnIds = (): SpawnOp[] =>
  [
    ['setgroups', 'deny'],
    ['uid_map', `0 ${process.geteuid?.() ?? 0} 1\n`],
    ['gid_map', `0 ${process.getegid?.() ?? 0} 1\n`],
  ].flatMap(([file = '', content = '']) => [
    op('openat', [-100, text(`/proc/self/${file}`), O_WRONLY], { store: file, name: `open ${file}` }),
    op('write', [{ slot: file }, Buffer.from(content), content.length], { name: `write ${file}` }),
  ])

/** Ends the walk without a program: only reached when everything before it went as expected. */
const NOTHING = op('execve', [text(''), null, null])

/** The first call that was not as expected, as `call: ERRNO`; undefined when all were. */
export async function failedCall(
  namespaces: SpawnRequest['namespaces'],
  ops: readonly SpawnOp[],
  cgroupFd?: number,
): Promise<string | undefined> {
  const place = cgroupFd === undefined ? {} : { cgroupFd }
  const result = await spawn({ namespaces, ops: [...ops, NOTHING], ...place })
  if (result.ok) {
    // The program that does not exist was not executed: the child was killed before it could say so.
    const end = waitPidfd(result.pidfd, { block: true })
    closeSync(result.pidfd)
    return `ended by ${end?.signal ?? end?.exitCode}`
  }
  if (result.index === ops.length && result.errnoName === 'ENOENT') return undefined
  return `${result.op.name}: ${result.errnoName}`
}
