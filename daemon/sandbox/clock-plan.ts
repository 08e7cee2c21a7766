// pure
import type { Profile } from '../contract/profile.ts'
import type { SpawnOp } from '../contract/spawn.ts'
import { AT_FDCWD, CLONE_NEWTIME, O_CLOEXEC, O_WRONLY } from '../kernel/uapi/index.ts'
import { call, cstring, slot, storing } from './calls.ts'
import type { HostFacts } from './root-facts.ts'

/**
 * Clocks that begin at 0, where the profile asks for them. A new time namespace shows the host's clocks until somebody
 * moves them. It must be made and set before the first program runs: the kernel freezes the offsets then. Joining it is
 * refused to a child that shares memory, so a command beside an agent gets one of its own with the agent's offsets,
 * which is the same to every program.
 */
export function clockOps(
  profile: Pick<Profile, 'namespaces'>,
  { clocks }: Pick<HostFacts, 'clocks'>,
): SpawnOp[] {
  if (!profile.namespaces.time) return []
  const text = Buffer.from(`monotonic -${clocks.monotonic} 0\nboottime -${clocks.boottime} 0\n`)
  const path = cstring('/proc/self/timens_offsets')
  return [
    call('make a time namespace', 'unshare', CLONE_NEWTIME),
    storing(call('open its clocks', 'openat', AT_FDCWD, path, O_WRONLY | O_CLOEXEC), 'clocks'),
    call('let its clocks begin at 0', 'write', slot('clocks'), text, text.length),
    call('close its clocks', 'close', slot('clocks')),
  ]
}
