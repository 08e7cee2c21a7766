import { posix } from 'node:path'
import type { Import, Source } from './source.ts'

/** DESIGN: branch, sandbox and network stand on the kernel layer; policy, budget, audit and metrics must not know it. */
const FEATURES = ['branch', 'sandbox', 'network', 'policy', 'budget', 'audit', 'metrics']

/** What each folder's code may import at run time, besides itself. `◦` = only files marked `// pure`. */
const TABLE: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  lib: ['contract'],
  kernel: ['contract', 'lib'],
  branch: ['contract', 'lib', 'kernel'],
  sandbox: ['contract', 'lib', 'kernel'],
  network: ['contract', 'lib', 'kernel'],
  policy: ['contract', 'lib'],
  budget: ['contract', 'lib'],
  audit: ['contract', 'lib'],
  metrics: ['contract', 'lib'],
  agent: ['contract', 'lib', 'kernel', 'features'],
  prove: ['contract', 'lib', 'kernel', 'features', 'agent'],
  api: ['contract', 'lib', 'kernel', 'features', 'agent'],
  /** Files directly in daemon/: the composition roots. */
  root: ['contract', 'lib', 'kernel', 'features', 'agent', 'api', 'prove'],
  ctl: ['contract', 'lib'],
}

/** `daemon/branch/x.ts` → `branch`, `daemon/main.ts` → `root`, `ctl/…` → `ctl`, anything else → its first folder. */
export function layerOf(path: string): string {
  const [top, second, ...rest] = path.split('/')
  if (top !== 'daemon') return top ?? ''
  return rest.length === 0 ? 'root' : (second ?? '')
}

/**
 * Why this import is against the table, or undefined. `isPure` answers for a repository path. Tests beside the source
 * follow the table of their folder and may also use test/; tests and tools elsewhere may import anything.
 */
export function layerViolation(
  source: Source,
  entry: Import,
  isPure: (path: string) => boolean,
): string | undefined {
  if (!entry.from.startsWith('.')) return undefined
  const from = layerOf(source.path)
  const allowed = TABLE[from]
  if (allowed === undefined) return undefined
  const target = posix.join(posix.dirname(source.path), entry.from)
  const to = layerOf(target)
  if (to === from || (to === 'test' && source.path.endsWith('.test.ts'))) return mainViolation(target)
  if (from === 'ctl' && to === 'root') return ctlViolation(target, entry)
  if (allowed.includes(to) || (allowed.includes('features') && FEATURES.includes(to))) return undefined
  const typesOfPeer = FEATURES.includes(from) && FEATURES.includes(to) && entry.typeOnly
  if (typesOfPeer)
    return isPure(target) ? undefined : `${from} takes types of ${target}, which is not marked // pure`
  return `${from} must not import ${to} (${target})`
}

const mainViolation = (target: string): string | undefined =>
  target === 'daemon/main.ts' ? 'nothing imports daemon/main.ts' : undefined

/** The command line reaches the engine through a facade in daemon/, loaded when a command needs it. */
function ctlViolation(target: string, entry: Import): string | undefined {
  if (target === 'daemon/main.ts') return 'nothing imports daemon/main.ts'
  if (entry.typeOnly || entry.dynamic) return undefined
  return `ctl must load ${target} with import(), so that a command pays only for what it uses`
}
