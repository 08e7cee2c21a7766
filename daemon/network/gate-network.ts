import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { UndoStack } from '../lib/undo.ts'
import { BranchAuthority } from './authority.ts'
import { BranchQueue, type OutsideOptions } from './branch-queue.ts'
import { BudgetMeter, type NetworkUsage } from './budget-meter.ts'
import { type BlockedRow, DenialLog } from './denial-log.ts'
import { DnsServer } from './dns.ts'
import { type Exposed, ExposedPorts, exposedPlaces } from './exposed.ts'
import type { Gate } from './gate.ts'
import { NameBook } from './name-book.ts'
import { NameGuard } from './name-guard.ts'
import { AgentNetns } from './namespace.ts'
import { PROXY_PORT } from './namespace-ports.ts'
import { BranchProxy } from './proxy.ts'
import { compileRules } from './request-rule.ts'
import { DROP_REASONS, type DropReason } from './ruleset.ts'
import { NO_VIEW, type TrustView, trustView } from './trust-view.ts'
import { Upstream } from './upstream.ts'

export interface NetworkOptions extends OutsideOptions {
  /** From `prepareNetns`, or a pidfd. Stays the caller's. */
  readonly netns: number
}

export interface BranchNetwork extends TrustView {
  /** The descriptor that was given: the agent is moved into it. */
  readonly namespace: number
  readonly queue: BranchQueue
  usage(): NetworkUsage
  /** Packets that went nowhere, per reason. */
  dropped(): readonly BlockedRow[]
  /** What was blocked and why, packets included. */
  blocked(): readonly BlockedRow[]
  /** Ends every connection; the queue is closed too. May be called again. */
  close(): Promise<void>
}

/** Opens the gate of one branch inside its namespace. When it resolves, every socket listens: the agent may start. */
export async function openNetwork(options: NetworkOptions): Promise<BranchNetwork> {
  const undo = new UndoStack()
  try {
    const network = await build(options, undo)
    undo.keep()
    return network
  } catch (error) {
    throw await undo.unwindAfter(error)
  }
}

async function build(options: NetworkOptions, undo: UndoStack): Promise<BranchNetwork> {
  const log = new DenialLog(
    options.branch,
    (event) => options.onEvent(event),
    (layer) => options.counters?.denied(layer),
  )
  const queue = await BranchQueue.open(options)
  undo.push('close the queue', () => queue.close())
  const { gate, authority } = await makeGate(options, queue, log)
  undo.push('close the upstream connections', () => gate.upstream.close())
  const isOpen = options.network.mode !== 'none'
  const exposed = isOpen ? exposedPlaces(options.network.expose, gate.names) : []
  const netns = AgentNetns.open(
    options.netns,
    isOpen ? transparentPorts(options, exposed) : [],
    exposed.map((one) => one.place),
  )
  undo.push('close the rules of the namespace', () => netns.release())
  const { proxy, dns, ports } = await listenAll(gate, netns, exposed, log, undo)
  const view = isOpen ? await trustView(authority.certificate, options.network) : NO_VIEW
  let closing: Promise<void> | undefined
  return {
    namespace: options.netns,
    ...view,
    queue,
    usage: () => ({ ...gate.budget.total }),
    dropped: () => droppedRows(netns.dropped()),
    blocked: () => [...log.rows(), ...droppedRows(netns.dropped())],
    close: () => {
      closing ??= closeAll(proxy, dns, ports, gate, netns, queue)
      return closing
    },
  }
}

/** Every descriptor is handed over before anything is waited for: whatever fails, each is closed by its server. */
async function listenAll(
  gate: Gate,
  netns: AgentNetns,
  exposed: readonly Exposed[],
  log: DenialLog,
  undo: UndoStack,
): Promise<{ proxy: BranchProxy; dns: DnsServer; ports: ExposedPorts }> {
  const proxy = new BranchProxy(gate)
  undo.push('close the proxy', () => proxy.close())
  const dns = new DnsServer({
    names: gate.names,
    // The profile names exposed hosts itself.
    check: (host) =>
      exposed.some((one) => one.host.text === host.text) ? { ok: true } : gate.checkName(host),
    denied: (name, rule, reason, help) => log.add('dns', name, rule, reason, help),
  })
  undo.push('close the name service', () => dns.close())
  const ports = new ExposedPorts(gate)
  undo.push('close the exposed ports', () => ports.close())
  const { listeners } = netns
  await Promise.all([
    proxy.listen(listeners.explicit, listeners.transparent),
    dns.listen(listeners.names.udp, listeners.names.tcp),
    ports.listen(exposed, listeners.exposed),
  ])
  failpoint('network.listening')
  return { proxy, dns, ports }
}

/** First what the agent can reach, then what it reached through it. */
async function closeAll(
  proxy: BranchProxy,
  dns: DnsServer,
  ports: ExposedPorts,
  gate: Gate,
  netns: AgentNetns,
  queue: BranchQueue,
): Promise<void> {
  await Promise.all([proxy.close(), dns.close(), ports.close()])
  gate.upstream.close()
  netns.release()
  await queue.close()
}

async function makeGate(
  options: NetworkOptions,
  queue: BranchQueue,
  log: DenialLog,
): Promise<{ gate: Gate; authority: BranchAuthority }> {
  const rules = compileRules(options.network)
  const guard = new NameGuard(rules)
  const authority = new BranchAuthority(options.branch)
  const gate: Gate = {
    rules,
    limits: queue.limits,
    queue: queue.queue,
    upstream: new Upstream(queue.resolver, queue.limits, options.authorities),
    authority,
    credentials: await queue.credentials(),
    names: new NameBook(),
    budget: new BudgetMeter(),
    checkName: (host) => guard.check(host, Math.floor(performance.now() / 60_000)),
    denied: (subject, denial) => log.add('proxy', subject, denial.rule, denial.message, denial.help),
    queued: (id) => queue.announce(queue.queue.get(id)),
    served: (kind, seconds) => options.counters?.served(kind, seconds),
  }
  return { gate, authority }
}

function transparentPorts(options: NetworkOptions, exposed: readonly Exposed[]): readonly number[] {
  const ports = new Set([80, 443, ...options.network.ports])
  for (const taken of [53, PROXY_PORT]) ports.delete(taken)
  for (const { place } of exposed)
    if (ports.has(place.port))
      throw new PuzzledError(
        'profile-invalid',
        `Port ${place.port} cannot be both exposed and given to the proxy`,
      )
  return [...ports]
}

function droppedRows(dropped: ReadonlyMap<DropReason, number>): readonly BlockedRow[] {
  return [...dropped]
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => ({
      layer: 'nft',
      subject: 'packets',
      rule: reason,
      message: `Dropped: ${DROP_REASONS[reason]}`,
      help: reason === 'port' ? 'network.ports: [the port], if HTTP or TLS is spoken there' : undefined,
      first: '',
      count,
    }))
}
