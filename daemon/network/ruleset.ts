// pure

/** Why a packet of an agent went nowhere: the names of the counters in its namespace. */
export const DROP_REASONS = {
  multicast: 'multicast and broadcast',
  udp: 'UDP other than DNS to the gate',
  port: 'TCP to a port that the profile does not list',
  icmp: 'ICMP',
  other: 'a protocol other than TCP and UDP (SCTP, raw, …)',
  forward: 'packets to be forwarded',
  outside: 'packets of another interface',
} as const

export type DropReason = keyof typeof DROP_REASONS

const FAMILY = 'inet'
const TABLE = 'puzzled'
type Json = Record<string, unknown>

const match = (left: Json, right: unknown, op = '=='): Json => ({ match: { op, left, right } })
const payload = (protocol: string, field: string): Json => ({ payload: { protocol, field } })
const prefix = (addr: string, len: number): Json => ({ prefix: { addr, len } })
/** By number: libnftables looks names up in /etc/protocols, which a small system (or Debian without netbase) lacks. */
const PROTOCOL = { icmp: 1, tcp: 6, udp: 17, 'ipv6-icmp': 58 } as const
type Protocol = keyof typeof PROTOCOL

const protocol = (names: Protocol | readonly Protocol[]): Json =>
  match(
    { meta: { key: 'l4proto' } },
    typeof names === 'string' ? PROTOCOL[names] : { set: names.map((name) => PROTOCOL[name]) },
  )
/** A bare `udp` as a counter's name would be taken for the protocol. */
const counterName = (reason: string): string => `dropped_${reason}`
const counted = (reason: DropReason): Json => ({ counter: counterName(reason) })
const accept = { accept: null }
const drop = { drop: null }

/**
 * The agent's namespace reaches nothing but itself even without these rules. They decide what of it reaches the gate,
 * answer the rest at once instead of letting programs hang, and count it per reason.
 */
export function ruleset(ports: readonly number[]): { nftables: readonly Json[] } {
  const rule = (chain: string, ...expr: Json[]): Json => ({
    add: { rule: { family: FAMILY, table: TABLE, chain, expr } },
  })
  return {
    nftables: [
      { add: { table: { family: FAMILY, name: TABLE } } },
      ...Object.keys(DROP_REASONS).map((name) => ({
        add: { counter: { family: FAMILY, table: TABLE, name: counterName(name) } },
      })),
      chain('names', 'nat', 'output', -100, 'accept'),
      chain('out', 'filter', 'output', 0, 'drop'),
      chain('in', 'filter', 'input', 0, 'drop'),
      chain('through', 'filter', 'forward', 0, 'drop'),
      // Programs with a resolver of their own ask ours without knowing it.
      ...['ip', 'ip6'].flatMap((family) =>
        ['udp', 'tcp'].map((l4) =>
          rule(
            'names',
            match(payload(family, 'daddr'), family === 'ip' ? prefix('127.0.0.0', 8) : '::1', '!='),
            match(payload(l4, 'dport'), 53),
            { redirect: { port: 53 } },
          ),
        ),
      ),
      rule(
        'out',
        match(payload('ip', 'daddr'), { set: [prefix('224.0.0.0', 4), '255.255.255.255'] }),
        counted('multicast'),
        drop,
      ),
      rule('out', match(payload('ip6', 'daddr'), prefix('ff00::', 8)), counted('multicast'), drop),
      // The agent's own loopback services are its own business.
      rule('out', protocol(['tcp', 'udp']), match(payload('ip', 'daddr'), prefix('127.0.0.0', 8)), accept),
      rule('out', protocol(['tcp', 'udp']), match(payload('ip6', 'daddr'), '::1'), accept),
      rule('out', match({ ct: { key: 'state' } }, ['established', 'related'], 'in'), accept),
      rule('out', match(payload('tcp', 'dport'), { set: [...new Set(ports)] }), accept),
      rule('out', protocol('tcp'), counted('port'), { reject: { type: 'tcp reset' } }),
      rule('out', protocol('udp'), counted('udp'), { reject: { type: 'icmpx', expr: 'port-unreachable' } }),
      rule('out', protocol(['icmp', 'ipv6-icmp']), counted('icmp'), drop),
      rule('out', counted('other'), drop),
      rule('in', match({ meta: { key: 'iifname' } }, 'lo'), accept),
      rule('in', counted('outside'), drop),
      rule('through', counted('forward'), drop),
    ],
  }
}

const chain = (name: string, type: string, hook: string, prio: number, policy: string): Json => ({
  add: { chain: { family: FAMILY, table: TABLE, name, type, hook, prio, policy } },
})

export const LIST_COUNTERS = { nftables: [{ list: { counters: { family: FAMILY, table: TABLE } } }] }

/** Packets per reason out of libnftables' answer to `LIST_COUNTERS`. */
export function readCounters(answer: unknown): ReadonlyMap<DropReason, number> {
  const found = new Map<DropReason, number>()
  const list = (
    answer as { nftables?: readonly { counter?: { name?: string; packets?: number } }[] } | undefined
  )?.nftables
  for (const { counter } of list ?? []) {
    const reason = counter?.name?.replace(/^dropped_/, '') ?? ''
    if (reason in DROP_REASONS) found.set(reason as DropReason, counter?.packets ?? 0)
  }
  return found
}
