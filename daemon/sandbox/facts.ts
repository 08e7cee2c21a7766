import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { release, uptime } from 'node:os'
import { kernelMounts } from '../kernel/mountinfo.ts'
import { boundingLimits } from './resource-limits.ts'
import {
  type HostFacts,
  type PathKind,
  PROC_MASKS,
  PROC_READ_ONLY,
  SECRET_PATHS,
  SECRET_SSH_SUFFIX,
} from './root-facts.ts'

/**
 * Looks at the host once per start: links below `/`, secrets, and the paths that the caller asks about. Cheap (some
 * thirty `lstat`), so it is never stale.
 */
export function gatherFacts(paths: Iterable<string>): HostFacts {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  return {
    kernel: [major, minor],
    clocks: { monotonic: process.hrtime()[0], boottime: Math.floor(uptime()) },
    hardLimits: boundingLimits(
      readFileSync('/proc/self/status', 'utf8'),
      readFileSync('/proc/self/limits', 'utf8'),
    ),
    links: topLevelLinks(),
    secrets: [...SECRET_PATHS, ...sshKeys()].flatMap(existing),
    kernelMounts: kernelMounts(readFileSync('/proc/self/mountinfo')).flatMap(({ target }) =>
      existing(target.toString('utf8')),
    ),
    ...procFacts(),
    paths: Object.fromEntries([...paths].map((path) => [path, resolved(path)])),
    ...login(),
    oomScore: Number(readFileSync('/proc/self/oom_score_adj', 'utf8')),
  }
}

const NOBODY = 2 ** 32 - 1

function login(): Pick<HostFacts, 'loginUid'> {
  if (!existsSync('/proc/self/loginuid')) return {}
  const uid = Number(readFileSync('/proc/self/loginuid', 'utf8'))
  return uid === NOBODY ? {} : { loginUid: uid }
}

type ProcFacts = Pick<HostFacts, 'lastCapability' | 'procMasks' | 'procReadOnly'>
let proc: ProcFacts | undefined

/** What the kernel was built with does not change while it runs. */
function procFacts(): ProcFacts {
  proc ??= {
    lastCapability: Number(readFileSync('/proc/sys/kernel/cap_last_cap', 'utf8')),
    procMasks: PROC_MASKS.flatMap(existing),
    procReadOnly: PROC_READ_ONLY.filter((path) => kindOf(path) !== 'absent'),
  }
  return proc
}

function topLevelLinks(): Record<string, string> {
  const links = readdirSync('/', { withFileTypes: true }).filter((entry) => entry.isSymbolicLink())
  return Object.fromEntries(links.map((entry) => [`/${entry.name}`, readlinkSync(`/${entry.name}`)]))
}

function existing(path: string): { path: string; kind: 'directory' | 'file' }[] {
  const kind = kindOf(path)
  return kind === 'directory' || kind === 'file' ? [{ path, kind }] : []
}

function sshKeys(): string[] {
  try {
    return readdirSync('/etc/ssh')
      .filter((name) => name.endsWith(SECRET_SSH_SUFFIX))
      .map((name) => `/etc/ssh/${name}`)
  } catch {
    // No SSH server: nothing to hide. What cannot be listed by root is not there.
    return []
  }
}

function resolved(path: string): { kind: PathKind; real: string } {
  // Asked first, because most of what a profile names is optional and an exception costs more than the question.
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return { real: path, kind: 'absent' }
  try {
    const real = realpathSync.native(path)
    const stat = statSync(real)
    return { real, kind: stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : 'other' }
  } catch {
    return { real: path, kind: 'absent' }
  }
}

/** A path that cannot be looked at counts as absent: the kernel will refuse it by name when it is used. */
function kindOf(path: string): PathKind {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat === undefined) return 'absent'
    if (stat.isSymbolicLink()) return 'link'
    return stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : 'other'
  } catch {
    return 'absent'
  }
}
