// pure
import type { NetworkProfile, NetworkRule, PathGrant, Profile } from '../contract/profile.ts'

/** One grant or limit of a profile in words; `key` is where its origin is found. */
export interface ProfileLine {
  key: string
  text: string
  why?: string
}

/** A resolved profile as lines, in one order: for showing it with origins, and for comparing two. */
export function profileLines(profile: Profile): ProfileLine[] {
  const { network, gate } = profile
  const limit = (section: string, values: Readonly<Record<string, unknown>>): ProfileLine[] =>
    Object.entries(values).map(([key, value]) => ({
      key: `${section}.${key}`,
      text: `${key} ${String(value)}`,
    }))
  return [
    { key: 'enforce', text: `enforce ${profile.enforce}` },
    ...profile.mounts.map(({ path, mode, optional, why }) => ({
      key: `mounts:${path}`,
      text: `mount ${path} ${mode}${optional ? ' (optional)' : ''}`,
      why,
    })),
    { key: 'home', text: `home ${profile.home}` },
    ...profile.environment.pass.map((name) => ({ key: `environment.pass:${name}`, text: `pass ${name}` })),
    ...Object.entries(profile.environment.set).map(([name, value]) => ({
      key: `environment.set:${name}`,
      text: `set ${name}=${value}`,
    })),
    ...(profile.exec.allow === 'any'
      ? [{ key: 'exec.allow', text: 'exec any program' }]
      : grantLines('exec.allow', 'exec', profile.exec.allow)),
    ...grantLines('exec.deny', 'never exec', profile.exec.deny),
    { key: 'seccomp', text: `seccomp ${profile.seccomp}` },
    ...grantLines('landlock.read', 'read', profile.landlock.read),
    ...grantLines('landlock.write', 'write', profile.landlock.write),
    ...(profile.namespaces.time ? [{ key: 'namespaces', text: 'own time namespace' }] : []),
    ...networkLines(network),
    ...limit('budgets', { ...profile.budgets.limits, atLimit: profile.budgets.atLimit }),
    ...limit('resources', profile.resources),
    ...limit('gate', {
      onAgentFailure: gate.onAgentFailure,
      allowSetuid: gate.allowSetuid,
      maxFiles: gate.maxFiles,
      maxBytes: gate.maxBytes,
      maxDeletions: gate.maxDeletions,
    }),
    ...gate.policies.map((name) => ({ key: 'gate.policies', text: `policy ${name}` })),
    ...grantLines('gate.holdPaths', 'hold', gate.holdPaths),
    ...grantLines('gate.denyPaths', 'deny', gate.denyPaths),
    ...profile.require.map((name) => ({ key: 'require', text: `require ${name}` })),
    ...profile.prefer.map((name) => ({ key: 'prefer', text: `prefer ${name}` })),
    ...limit('rlimits', profile.rlimits),
  ]
}

const networkLines = (network: NetworkProfile): ProfileLine[] => [
  { key: 'network.mode', text: `network ${network.mode}` },
  ...network.rules.map((rule) => ({
    key: `network.rules:${rule.id}`,
    text: ruleText(rule),
    why: rule.why,
  })),
  ...network.expose.map(({ host, port, why }) => ({
    key: `network.expose:${host}:${port}`,
    text: `reach ${host}:${port}`,
    why,
  })),
  ...network.ports.map((port) => ({
    key: `network.ports:${port}`,
    text: `port ${port} through the proxy`,
  })),
  ...network.credentials.map(({ placeholder, hosts, why }) => ({
    key: `network.credentials:${placeholder}`,
    text: `credential ${placeholder} for ${hosts.join(' ')}`,
    why,
  })),
]

const grantLines = (section: string, verb: string, grants: readonly PathGrant[]): ProfileLine[] =>
  grants.map(({ path, why }) => ({ key: `${section}:${path}`, text: `${verb} ${path}`, why }))

function ruleText({ id, class: kind, hosts, ports, methods, paths, tls, budget }: NetworkRule): string {
  const list = (items: readonly unknown[] | 'any'): string => (items === 'any' ? 'any' : items.join(','))
  const capped = Object.entries(budget).map(([key, value]) => ` ${key}≤${value}`)
  return `rule ${id}: ${kind} ${list(methods)} ${list(hosts)}:${list(ports)} ${list(paths)} ${tls}${capped.join('')}`
}

/** What stands in one profile and not in the other, in the order of the profiles. */
export function compareProfiles(from: Profile, to: Profile): { sign: '-' | '+'; text: string }[] {
  const before = profileLines(from)
  const after = profileLines(to)
  const texts = (lines: readonly ProfileLine[]): Set<string> => new Set(lines.map(({ text }) => text))
  const [had, has] = [texts(before), texts(after)]
  return [
    ...before.filter(({ text }) => !has.has(text)).map(({ text }) => ({ sign: '-' as const, text })),
    ...after.filter(({ text }) => !had.has(text)).map(({ text }) => ({ sign: '+' as const, text })),
  ]
}
