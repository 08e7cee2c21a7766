// pure
import type { NetworkProfile, NetworkRule, PathGrant, Profile } from '../contract/profile.ts'
import { globWithin, hostWithin, listWithin, pathWithin, variableWithin } from './covers.ts'

/** One thing that a profile grants and the profile that it extends does not. */
export interface Widening {
  /** Key of the grant in the child's origins, and of the limit in the parent's. */
  key: string
  parentKey: string
  found: string
  allowed: string
}

type Report = (key: string, found: string, allowed: string, parentKey?: string) => void

/** Everything in which `child` grants more than `parent`. Empty = it only narrows. */
export function widenings(parent: Profile, child: Profile): Widening[] {
  const found: Widening[] = []
  const report: Report = (key, what, allowed, parentKey = key) =>
    found.push({ key, parentKey, found: what, allowed })
  ordered(report, 'enforce', ['enforce', 'shadow'], parent.enforce, child.enforce)
  ordered(report, 'home', ['hidden', 'private', 'overlay'], parent.home, child.home)
  ordered(report, 'seccomp', ['strict', 'standard', 'build'], parent.seccomp, child.seccomp)
  // Clocks of its own tell an agent less about the host.
  ordered(report, 'namespaces', [true, false], parent.namespaces.time, child.namespaces.time)
  compareMounts(report, parent, child)
  for (const name of child.environment.pass)
    if (!parent.environment.pass.some((outer) => variableWithin(outer, name)))
      report(`environment.pass:${name}`, `passes ${name}`, list(parent.environment.pass))
  compareExec(report, parent, child)
  comparePaths(report, 'landlock.read', parent.landlock.read, child.landlock.read)
  comparePaths(report, 'landlock.write', parent.landlock.write, child.landlock.write)
  compareNetwork(report, parent.network, child.network)
  compareLimits(report, 'budgets', parent.budgets.limits, child.budgets.limits)
  compareLimits(report, 'resources', parent.resources, child.resources)
  compareLimits(report, 'rlimits', parent.rlimits, child.rlimits)
  compareGate(report, parent, child)
  return found
}

const list = (items: readonly string[]): string => (items.length === 0 ? 'nothing' : items.join(', '))

function ordered<Value>(
  report: Report,
  key: string,
  order: readonly Value[],
  parent: Value,
  child: Value,
): void {
  if (order.indexOf(child) > order.indexOf(parent)) report(key, String(child), `at most ${String(parent)}`)
}

const MOUNT_ORDER = ['hidden', 'ro', 'rw-overlay']

function compareMounts(report: Report, parent: Profile, child: Profile): void {
  for (const mount of child.mounts) {
    // The innermost mount of the parent is what the path would have been without the child's line.
    const outer = parent.mounts
      .filter(({ path }) => pathWithin(path, mount.path))
      .sort((a, b) => b.path.length - a.path.length)[0]
    const have = MOUNT_ORDER.indexOf(outer?.mode ?? 'hidden')
    if (MOUNT_ORDER.indexOf(mount.mode) > have)
      report(
        `mounts:${mount.path}`,
        `${mount.path} as ${mount.mode}`,
        outer === undefined ? 'no mount there' : `${outer.path} as ${outer.mode}`,
        outer === undefined ? 'mounts' : `mounts:${outer.path}`,
      )
  }
  for (const { path, mode } of parent.mounts)
    if (mode === 'hidden' && !child.mounts.some((mount) => mount.path === path))
      report(`mounts:${path}`, `${path} no longer hidden`, `${path} as hidden`)
}

function compareExec(report: Report, parent: Profile, child: Profile): void {
  if (child.exec.allow === 'any') {
    if (parent.exec.allow !== 'any') report('exec.allow', 'any program', 'the listed programs')
  } else if (parent.exec.allow !== 'any')
    comparePaths(report, 'exec.allow', parent.exec.allow, child.exec.allow)
}

function comparePaths(
  report: Report,
  key: string,
  parent: readonly PathGrant[],
  child: readonly PathGrant[],
): void {
  for (const { path } of child)
    if (!parent.some((outer) => pathWithin(outer.path, path)))
      report(`${key}:${path}`, path, list(parent.map((grant) => grant.path)), key)
}

function compareLimits(
  report: Report,
  key: string,
  parent: Readonly<Record<string, number | undefined>>,
  child: Readonly<Record<string, number | undefined>>,
): void {
  for (const [name, limit] of Object.entries(parent)) {
    const own = child[name]
    if (limit !== undefined && (own === undefined || own > limit))
      report(`${key}.${name}`, own === undefined ? 'no limit' : String(own), `at most ${limit}`)
  }
}

function compareGate(report: Report, parent: Profile, child: Profile): void {
  const { gate: outer } = parent
  const { gate: own } = child
  ordered(report, 'gate.onAgentFailure', ['hold', 'gate'], outer.onAgentFailure, own.onAgentFailure)
  ordered(report, 'gate.allowSetuid', [false, true], outer.allowSetuid, own.allowSetuid)
  for (const key of ['maxFiles', 'maxBytes', 'maxDeletions'] as const)
    if (own[key] > outer[key]) report(`gate.${key}`, String(own[key]), `at most ${outer[key]}`)
  for (const name of outer.policies)
    if (!own.policies.includes(name)) report('gate.policies', `without ${name}`, `with ${name}`)
}

const MODES = ['none', 'gated', 'open-read']
const CLASSES = ['deny', 'queue', 'read', 'live']

function compareNetwork(report: Report, parent: NetworkProfile, child: NetworkProfile): void {
  ordered(report, 'network.mode', MODES, parent.mode, child.mode)
  // Parent rules that refuse must still stand before anything else may match.
  const refusing = parent.rules.filter((rule) => rule.class === 'deny')
  for (const rule of refusing)
    if (!child.rules.some((own) => own.class === 'deny' && ruleWithin(own, rule)))
      report(`network.rules:${rule.id}`, `without the refusal "${rule.id}"`, 'it kept')
  for (const rule of child.rules)
    if (
      rule.class !== 'deny' &&
      !parent.rules.some((outer) => outer.class !== 'deny' && ruleWithin(outer, rule))
    )
      report(
        `network.rules:${rule.id}`,
        `rule "${rule.id}"`,
        'a rule within one of the extended profile',
        'network.rules',
      )
  for (const { host, port } of child.expose)
    if (!parent.expose.some((outer) => outer.host === host && outer.port === port))
      report(
        `network.expose:${host}:${port}`,
        `${host}:${port}`,
        list(parent.expose.map((e) => `${e.host}:${e.port}`)),
        'network.expose',
      )
  for (const port of child.ports)
    if (!parent.ports.includes(port))
      report(`network.ports:${port}`, String(port), list(parent.ports.map(String)), 'network.ports')
  for (const own of child.credentials) {
    const outer = parent.credentials.find((each) => each.placeholder === own.placeholder)
    const same = outer !== undefined && JSON.stringify(outer.source) === JSON.stringify(own.source)
    if (!same || !listWithin(outer.hosts, own.hosts, hostWithin))
      report(
        `network.credentials:${own.placeholder}`,
        `credential ${own.placeholder}`,
        'the same credential for the same hosts or fewer',
        'network.credentials',
      )
  }
}

/** Whether everything that `inner` lets through, `outer` lets through as well. */
function ruleWithin(outer: NetworkRule, inner: NetworkRule): boolean {
  const capped = (limit: number | undefined, own: number | undefined): boolean =>
    limit === undefined || (own !== undefined && own <= limit)
  return (
    CLASSES.indexOf(inner.class) <= CLASSES.indexOf(outer.class) &&
    (outer.tls === 'tunnel' || inner.tls === 'intercept') &&
    listWithin(outer.hosts, inner.hosts, hostWithin) &&
    listWithin(outer.ports, inner.ports) &&
    listWithin(outer.methods, inner.methods) &&
    listWithin(outer.paths, inner.paths, globWithin) &&
    (outer.readBody === inner.readBody || inner.readBody === undefined) &&
    listWithin(outer.readMethods ?? [], inner.readMethods ?? []) &&
    listWithin(outer.addresses ?? [], inner.addresses ?? []) &&
    (outer.class === 'deny' ||
      (capped(outer.budget.requests, inner.budget.requests) &&
        capped(outer.budget.bytes, inner.budget.bytes))) &&
    (outer.headers === undefined || (inner.headers !== undefined && listWithin(outer.headers, inner.headers)))
  )
}
