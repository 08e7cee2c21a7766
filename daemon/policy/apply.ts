// pure
import type { Budgets, NetworkProfile, Profile } from '../contract/profile.ts'
import { flattenGrants, type ProfileSource } from './profile.ts'

/**
 * A file laid over what it extends: a list that is written replaces the inherited one, except where a list takes away
 * (`exec.deny`, `gate.denyPaths`, …), which grows. Whether the result only narrows is `inherit.ts`'s question.
 */
export function applySource(parent: Profile, source: ProfileSource): Profile {
  const { home, seccomp, namespaces } = source
  return {
    name: source.name,
    description: source.description,
    enforce: source.enforce ?? parent.enforce,
    mounts: mounts(parent, source),
    home: home?.mode ?? parent.home,
    environment: environment(parent, source),
    exec: exec(parent, source),
    seccomp: seccomp?.program ?? parent.seccomp,
    landlock: {
      read: source.landlock?.read ? flattenGrants(source.landlock.read) : parent.landlock.read,
      write: source.landlock?.write ? flattenGrants(source.landlock.write) : parent.landlock.write,
    },
    namespaces: { time: namespaces?.time ?? parent.namespaces.time },
    network: network(parent.network, source.network),
    budgets: budgets(parent.budgets, source.budgets),
    resources: { ...parent.resources, ...defined(source.resources ?? {}) },
    gate: gate(parent, source),
    require: union(parent.require, source.require),
    prefer: union(parent.prefer, source.prefer),
    rlimits: { ...parent.rlimits, ...defined(source.rlimits ?? {}) },
  }
}

const union = <Item>(a: readonly Item[], b: readonly Item[] | undefined): Item[] => [
  ...new Set([...a, ...(b ?? [])]),
]

/** `exactOptionalPropertyTypes`: a key that is present must have a value. */
function defined<Values extends object>(
  values: Values,
): { [Key in keyof Values]: Exclude<Values[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Values]: Exclude<Values[Key], undefined>
  }
}

function mounts(parent: Profile, source: ProfileSource): Profile['mounts'] {
  const own = (source.mounts ?? []).flatMap((mount) =>
    mount.path.map((path) => ({ path, mode: mount.mode, optional: mount.optional ?? false, why: mount.why })),
  )
  const replaced = new Set(own.map(({ path }) => path))
  return [...parent.mounts.filter(({ path }) => !replaced.has(path)), ...own]
}

function environment(parent: Profile, { environment: own }: ProfileSource): Profile['environment'] {
  const set = Object.fromEntries((own?.set ?? []).map(({ name, value }) => [name, value]))
  return {
    pass: own?.pass ? own.pass.flatMap(({ names }) => names) : parent.environment.pass,
    set: { ...parent.environment.set, ...set },
  }
}

function exec(parent: Profile, { exec: own }: ProfileSource): Profile['exec'] {
  const allow = own?.allow
  return {
    allow: allow === undefined ? parent.exec.allow : 'any' in allow ? 'any' : flattenGrants(allow),
    deny: [...parent.exec.deny, ...flattenGrants(own?.deny)],
  }
}

function network(parent: NetworkProfile, own: ProfileSource['network']): NetworkProfile {
  if (own === undefined) return parent
  return {
    mode: own.mode ?? parent.mode,
    rules: own.rules ? rules(parent, own.rules.map(rule)) : parent.rules,
    expose: own.expose ?? parent.expose,
    ports: own.ports?.map(({ port }) => port) ?? parent.ports,
    replay: own.replay ?? parent.replay,
    credentials: own.credentials?.map(credential) ?? parent.credentials,
  }
}

/** The first rule that matches decides: a refusal of the parent stays in front, also when the file says it anew. */
function rules(parent: NetworkProfile, own: NetworkProfile['rules']): NetworkProfile['rules'] {
  const refusals = parent.rules.filter((each) => each.class === 'deny')
  const front = refusals.map((each) => own.find(({ id }) => id === each.id) ?? each)
  return [...front, ...own.filter(({ id }) => !refusals.some((each) => each.id === id))]
}

type SourceNetwork = NonNullable<ProfileSource['network']>

function rule(own: NonNullable<SourceNetwork['rules']>[number]): NetworkProfile['rules'][number] {
  const { readBody, readMethods, addresses, headers } = own
  return {
    id: own.id,
    hosts: own.hosts,
    ports: own.ports ?? [443, 80],
    // A queued or live rule is there for writes; a read rule only ever sees reads.
    methods: own.methods ?? (own.class === 'read' || own.class === 'live' ? ['GET', 'HEAD'] : 'any'),
    paths: own.paths ?? 'any',
    class: own.class,
    ...(readBody === undefined ? {} : { readBody }),
    ...(readMethods === undefined ? {} : { readMethods }),
    ...(addresses === undefined ? {} : { addresses }),
    tls: own.tls ?? 'intercept',
    budget: defined(own.budget ?? {}),
    ...(headers === undefined ? {} : { headers }),
    why: own.why,
  }
}

function credential(
  own: NonNullable<SourceNetwork['credentials']>[number],
): NetworkProfile['credentials'][number] {
  const { placeholder, source, hosts, why, header, query } = own
  return { placeholder, source, hosts, why, ...defined({ header, query }) }
}

function budgets(parent: Budgets, own: ProfileSource['budgets']): Budgets {
  if (own === undefined) return parent
  const { atLimit, ...limits } = own
  return { limits: { ...parent.limits, ...defined(limits) }, atLimit: atLimit ?? parent.atLimit }
}

function gate(parent: Profile, { gate: own }: ProfileSource): Profile['gate'] {
  if (own === undefined) return parent.gate
  return {
    onAgentFailure: own.onAgentFailure ?? parent.gate.onAgentFailure,
    allowSetuid: own.allowSetuid?.value ?? parent.gate.allowSetuid,
    maxFiles: own.maxFiles ?? parent.gate.maxFiles,
    maxBytes: own.maxBytes ?? parent.gate.maxBytes,
    maxDeletions: own.maxDeletions ?? parent.gate.maxDeletions,
    policies: union(parent.gate.policies, own.policies),
    holdPaths: [...parent.gate.holdPaths, ...flattenGrants(own.holdPaths)],
    denyPaths: [...parent.gate.denyPaths, ...flattenGrants(own.denyPaths)],
  }
}
