import { readFileSync, readlinkSync } from 'node:fs'
import { PuzzledError } from '../lib/errors.ts'

/** What a start or a commit does and nobody without it may: without any one of these it would fail in the middle. */
const NEEDED: Readonly<Record<string, bigint>> = {
  CAP_CHOWN: 0n,
  CAP_DAC_OVERRIDE: 1n,
  CAP_FOWNER: 3n,
  CAP_SETGID: 6n,
  CAP_SETUID: 7n,
  CAP_SETPCAP: 8n,
  CAP_NET_BIND_SERVICE: 10n,
  CAP_NET_ADMIN: 12n,
  CAP_SYS_ADMIN: 21n,
  CAP_MKNOD: 27n,
}
/** An agent's core limit is 1, see `sandbox/resource-limits.ts`: where the hard one is 0, that is more. */
const TO_RAISE_LIMITS = { CAP_SYS_RESOURCE: 24n } as const

export interface OwnRights {
  /** `/proc/self/status`. */
  readonly status: string
  /** `/proc/self/limits`. */
  readonly limits: string
  /** Where `/proc/self/ns/user` leads to. */
  readonly userNamespace: string
}

/** The kernel's own number of the first user namespace (PROC_USER_INIT_INO), the same on every machine. */
const FIRST = 'user:[4026531837]'

/** A start has some hundred files open at once, most of them the places of the agent's root. */
const FEWEST_FILES = 256

const IN_A_CONTAINER = 'Run it as root of the host itself; a container must be given them (--privileged)'

/** Why this process, run by root, could start no agents; null when it is. Who is not root at all is told so elsewhere. */
export function lackOfRights(own: OwnRights = ownRights()): PuzzledError | null {
  if (own.userNamespace !== FIRST)
    return new PuzzledError(
      'not-root',
      'Root of a user namespace is not root of this machine: it may make no devices and enter no cgroups',
      { hint: 'Run it as root of the host itself; a container must share its user namespace (--privileged)' },
    )
  const effective = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(own.status)?.[1] ?? '0'}`)
  const noCore = /^Max core file size +\S+ +0 /m.test(own.limits)
  const missing = Object.entries({ ...NEEDED, ...(noCore ? TO_RAISE_LIMITS : {}) })
    .filter(([, bit]) => ((effective >> bit) & 1n) === 0n)
    .map(([name]) => name)
  if (missing.length === 0) return lackOfFiles(own.limits)
  return new PuzzledError(
    'not-root',
    `This root may not do what branches need: without ${missing.join(', ')}`,
    {
      hint: IN_A_CONTAINER,
      data: { missing },
    },
  )
}

function lackOfFiles(limits: string): PuzzledError | null {
  const most = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? FEWEST_FILES)
  if (most >= FEWEST_FILES) return null
  return new PuzzledError(
    'kernel-refused',
    `Branches need more open files than the ${most} of this process`,
    {
      hint: 'ulimit -n 1024',
    },
  )
}

const ownRights = (): OwnRights => ({
  status: readFileSync('/proc/self/status', 'utf8'),
  limits: readFileSync('/proc/self/limits', 'utf8'),
  userNamespace: readlinkSync('/proc/self/ns/user'),
})
