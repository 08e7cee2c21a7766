import { readFile } from 'node:fs/promises'
import type { Requester } from '../contract/branch.ts'
import {
  BRANCH,
  BRANCH_INTERFACE,
  BRANCH_PREFIX,
  BUS_NAME,
  branchPath,
  MANAGER_INTERFACE,
  MANAGER_PATH,
} from '../contract/bus.ts'
import { toEntries } from '../contract/bus-values.ts'
import type { AgentSession, Engine } from '../contract/engine.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import type { BusConnection } from '../lib/bus-connection.ts'
import { PuzzledError } from '../lib/errors.ts'
import { isBranchId } from '../lib/ids.ts'
import { authorize, type Groups } from './authorize.ts'
import {
  type BranchExtras,
  branchObject,
  branchProperties,
  type EngineFor,
  selectionOf,
} from './branch-object.ts'
import { CallerBook } from './credentials.ts'
import { FloodGate } from './flood.ts'
import { type ManagerExtras, managerObject } from './manager-object.ts'
import { BusServer, type Caller, type Guard, type ObjectTree } from './server.ts'
import { SessionSocket } from './session-socket.ts'

export interface ServeOptions {
  version: string
  /** The engine on behalf of a requester. */
  engineFor(requester: Requester): Engine
  groups: () => Promise<Groups>
  nameOf: (uid: number) => Promise<string>
  takeDescriptors(pid: number, wanted: readonly number[]): Map<number, number>
  closeDescriptors(ours: Iterable<number>): void
  reload(): Promise<void>
  /** Where terminals of agents are offered. */
  sessionDirectory: string
  /** Denied calls are put on record. */
  denied(uid: number | null, what: string, why: string): void
}

const ROOT: Requester = { uid: 0, gid: 0, groups: [0], name: 'root' }

/** Puts the engine on the bus and owns the name until `stop`. Fails when another daemon owns it already. */
export class BusService {
  readonly #connection: BusConnection
  readonly #options: ServeOptions
  readonly #callers: CallerBook
  readonly #flood = new FloodGate(() => Date.now())
  readonly #sessions = new Map<string, { session: AgentSession; socket: SessionSocket }>()
  readonly #server: BusServer
  readonly #stop = new AbortController()
  readonly #root: Engine

  constructor(connection: BusConnection, options: ServeOptions) {
    this.#connection = connection
    this.#options = options
    this.#callers = new CallerBook(connection)
    this.#root = options.engineFor(ROOT)
    const machineId = async (): Promise<string> => (await readFile('/etc/machine-id', 'utf8')).trim()
    this.#server = new BusServer(connection, this.#tree(), this.#guard, machineId, this.#flood)
  }

  async start(report: (error: unknown) => void): Promise<void> {
    await this.#callers.start()
    this.#server.start()
    this.#announce().catch(report)
    // DBUS_NAME_FLAG_DO_NOT_QUEUE: a second daemon must fail, not wait to take over.
    const [result] = await this.#connection.callBus('RequestName', 'su', [BUS_NAME, 4])
    if (Number(result) !== 1)
      throw new PuzzledError('state-locked', `Another process owns ${BUS_NAME} on the bus`, {
        hint: 'A daemon runs already: systemctl status puzzled',
      })
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    for (const { socket } of this.#sessions.values()) await socket.close()
    await this.#connection.close()
  }

  #tree(): ObjectTree {
    const manager = managerObject(this.#engineFor, this.#managerExtras())
    const extras = this.#branchExtras()
    return {
      find: async (path) => {
        if (path === MANAGER_PATH) return manager
        if (!path.startsWith(BRANCH_PREFIX)) return undefined
        const id = path.slice(BRANCH_PREFIX.length)
        if (!isBranchId(id) || !(await this.#exists(id))) return undefined
        return branchObject(id, this.#engineFor, extras, () => this.#root.show(id))
      },
      paths: async () => (await this.#root.list()).map((branch) => branchPath(branch.id)),
    }
  }

  async #exists(id: string): Promise<boolean> {
    try {
      return (await this.#root.show(id)).id === id
    } catch (error) {
      if (error instanceof PuzzledError && error.code === 'branch-unknown') return false
      throw error
    }
  }

  readonly #engineFor: EngineFor = async (caller) =>
    caller.name === '' ? this.#root : this.#options.engineFor(await this.#requesterOf(caller))

  readonly #guard: Guard = async (caller, object, method, declared) => {
    let uid: number | null = null
    const what = `${object.face.name}.${method}`
    try {
      const credentials = await this.#callers.of(caller.name)
      uid = credentials.uid
      const owner = object.face === BRANCH ? await ownerOf(object) : null
      const question = { action: declared.action, owner }
      await authorize(
        this.#connection,
        { name: caller.name, credentials },
        await this.#options.groups(),
        question,
      )
    } catch (error) {
      this.#options.denied(uid, what, error instanceof Error ? error.message : String(error))
      throw error
    }
  }

  async #requesterOf(caller: Caller): Promise<Requester> {
    const { uid, gid, groups } = await this.#callers.of(caller.name)
    return { uid, gid, groups, name: await this.#options.nameOf(uid) }
  }

  #managerExtras(): ManagerExtras {
    return {
      version: this.#options.version,
      requesterOf: (caller) => this.#requesterOf(caller),
      takeDescriptors: async (caller, wanted) => {
        const { pid } = await this.#callers.of(caller.name)
        return this.#options.takeDescriptors(pid, wanted)
      },
      closeDescriptors: (ours) => this.#options.closeDescriptors(ours),
      offer: (session, owner) => this.#offer(session, owner),
      reload: () => this.#options.reload(),
      visible: async (caller, id) => {
        const record = await this.#root.show(id)
        const credentials = await this.#callers.of(caller.name)
        const { reviewers } = await this.#options.groups()
        return (
          credentials.uid === 0 ||
          record.requester.uid === credentials.uid ||
          (reviewers !== null && credentials.groups.includes(reviewers))
        )
      },
    }
  }

  #branchExtras(): BranchExtras {
    return {
      resize: (id, columns, rows) => this.#sessions.get(id)?.session.resize(columns, rows),
      approve: async (engine, caller, id, [digest, only, except, why]) =>
        engine.approve(id, {
          by: await this.#requesterOf(caller),
          digest: digest === '' ? null : String(digest),
          selection: selectionOf(only, except),
          why: String(why),
        }),
    }
  }

  /** The socket lives as long as the agent; its descriptors are inherited ones when there is nothing to attach to. */
  async #offer(session: AgentSession, owner: number): Promise<string> {
    if (session.output === undefined && session.errors === undefined) return ''
    const socket = await SessionSocket.open(this.#options.sessionDirectory, session, owner)
    this.#sessions.set(session.id, { session, socket })
    const end = async (): Promise<void> => {
      this.#sessions.delete(session.id)
      await socket.close()
    }
    session.exited
      .then(end, end)
      .catch((error: unknown) => this.#options.denied(null, 'session socket', String(error)))
    return socket.path
  }

  /** Every event goes out as a signal; moves also as property changes of the branch object. */
  async #announce(): Promise<void> {
    for await (const event of this.#root.events({ branch: null }, this.#stop.signal)) {
      this.#connection.signal(MANAGER_PATH, MANAGER_INTERFACE, 'Event', 'a{sv}', [toEntries(event)])
      if (event.kind === 'state') await this.#announceMove(event)
    }
  }

  async #announceMove(event: Extract<PuzzledEvent, { kind: 'state' }>): Promise<void> {
    const path = branchPath(event.branch)
    this.#connection.signal(path, BRANCH_INTERFACE, 'StateChanged', 'sss', [
      event.from,
      event.to,
      event.reason,
    ])
    const properties = branchProperties(await this.#root.show(event.branch))
    this.#server.propertiesChanged(path, BRANCH, properties)
    if (event.from === 'preparing') {
      this.#server.interfacesAdded(path, BRANCH, properties)
      this.#connection.signal(MANAGER_PATH, MANAGER_INTERFACE, 'BranchAdded', 'os', [path, event.branch])
    }
    if (event.to === 'committed' || event.to === 'discarded') {
      this.#server.interfacesRemoved(path, BRANCH)
      this.#connection.signal(MANAGER_PATH, MANAGER_INTERFACE, 'BranchRemoved', 'os', [path, event.branch])
    }
  }
}

async function ownerOf(object: {
  properties(): Promise<Readonly<Record<string, readonly [string, unknown]>>>
}): Promise<number> {
  const { Requester: requester } = await object.properties()
  return Number(requester?.[1] ?? -1)
}
