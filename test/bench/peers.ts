import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { isExecutable } from '../tier/executable.ts'
import type { Notes } from './harness.ts'

/** What we are compared with, and where it comes from. */
const HOW: Readonly<Record<string, string>> = {
  bwrap: 'apt-get install bubblewrap',
  crun: 'apt-get install crun',
  runc: 'apt-get install runc',
  firejail: 'apt-get install firejail',
  git: 'apt-get install git',
  rsync: 'apt-get install rsync',
  squid: 'apt-get install squid',
  mitmdump: 'apt-get install mitmproxy',
  try: 'Debian has no package of it; it is one shell script (binpash/try), which needs mergerfs or unionfs for nested mounts: put it on the PATH as `try`',
  srt: `npm install --prefix ${sandboxRuntime()} @anthropic-ai/sandbox-runtime; it needs bubblewrap, socat and ripgrep`,
}

/** Peers from npm live outside of the project: nothing of ours depends on them. */
export function sandboxRuntime(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'puzzled-tools', 'sandbox-runtime')
}

/** How a peer gets onto this machine. */
export const howToInstall = (program: string): string => HOW[program] ?? 'it is not on the PATH'

/** The program's path; where it is not here that is noted, with what would bring it. */
export function findPeer(program: string, notes: Notes): string | undefined {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    join(sandboxRuntime(), 'node_modules', '.bin'),
  ]
  const found = folders.map((folder) => join(folder, program)).find(isExecutable)
  if (found === undefined) notes.missing(program, howToInstall(program))
  return found
}
