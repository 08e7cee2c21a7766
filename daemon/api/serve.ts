import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import type { Provenance } from '../audit/provenance.ts'
import type { BranchRecord, Requester } from '../contract/branch.ts'
import {
  BRANCH,
  BRANCH_INTERFACE,
  BRANCH_PREFIX,
  BUS_NAME,
  type BusAction,
  branchPath,
  MANAGER_INTERFACE,
  MANAGER_PATH,
} from '../contract/bus.ts'
import { toEntries } from '../contract/bus-values.ts'
import type { Engine, SessionStdio, TakenStreams } from '../contract/engine.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import { isTerminal } from '../contract/states.ts'
import type { BusConnection } from '../lib/bus-connection.ts'
import { PuzzledError } from '../lib/errors.ts'
import { isBranchId } from '../lib/ids.ts'
import { KeyLock } from '../lib/key-lock.ts'
import { everySoOften, type TellProgress } from '../lib/progress.ts'
import { authorize, type Groups, maySee, refuseInside } from './authorize.ts'
import { provenanceFor } from './blame.ts'
import {
  type BranchExtras,
  branchObject,
  branchProperties,
  type EngineFor,
  goneObject,
  selectionOf,
} from './branch-object.ts'
import { ChangePages } from './change-pages.ts'
import { CallerBook, type Credentials } from './credentials.ts'
import { FloodGate } from './flood.ts'
import { type ManagerExtras, managerObject } from './manager-object.ts'
import { Polkit } from './polkit.ts'
import { Recent } from './recent.ts'
import { type BusObject, BusServer, type Caller, type Guard, type ObjectTree } from './server.ts'
import { Sessions } from './sessions.ts'

export interface ServeOptions {
  version: string
  /** The engine on behalf of a requester, who is told how far long work is. */
  engineFor(requester: Requester, tell?: TellProgress): Engine
  groups: () => Promise<Groups>
  nameOf: (uid: number) => Promise<string>
  takeStreams(caller: { pid: number; uid: number; gid: number }, stdio: SessionStdio): Promise<TakenStreams>
  reload(): Promise<void>
  /** The last commits on record that touched a path, newest first. */
  blame(path: string, most: number): Promise<readonly Provenance[]>
  /** How long polkit may take to ask a person, in milliseconds. */
  polkitPatience?: number
  /** Branches that ended lately, also those that are gone. */
  finished: { find(id: string): Gone | undefined; all(): readonly Gone[] }
  /** Where terminals of agents are offered. */
  sessionDirectory: string
  /** Whether whoever connected there may stay. */
  admits(socket: Socket): Promise<boolean>
  /** Denied calls are put on record. */
  denied(uid: number | null, what: string, why: string): void
  /** Hears of defects, and of what nobody else can be told. */
  report(error: unknown): void
}

type Gone = { readonly id: string; readonly name: string | null; readonly uid: number }

/** Probing takes a while, and anybody may ask. */
const FEATURES_MILLIS = 60_000
const MOST_BLAMED = 100
const PROGRESS_MILLIS = 200

const ROOT: Requester = { uid: 0, gid: 0, groups: [0], name: 'root' }

/** Puts the engine on the bus and owns the name until `stop`. Fails when another daemon owns it already. */
export class BusService {
  readonly #connection: BusConnection
  readonly #options: ServeOptions
  readonly #callers: CallerBook
  readonly #polkit: Polkit
  readonly #flood = new FloodGate(() => Date.now())
  readonly #sessions: Sessions
  readonly #pages = new ChangePages()
  readonly #readings = new KeyLock<string>()
  readonly #server: BusServer
  /** As a branch was when something last happened to it: whoever saw it also hears that it is gone. */
  readonly #seen = new Map<string, BranchRecord>()
  readonly #stop = new AbortController()
  readonly #root: Engine

  constructor(connection: BusConnection, options: ServeOptions) {
    this.#connection = connection
    this.#options = options
    this.#callers = new CallerBook(connection, (name) => this.#flood.forget(name))
    this.#polkit = new Polkit(connection, options.polkitPatience)
    this.#root = options.engineFor(ROOT)
    this.#sessions = new Sessions(
      options.sessionDirectory,
      (socket) => options.admits(socket),
      options.report,
    )
    const machineId = async (): Promise<string> => (await readFile('/etc/machine-id', 'utf8')).trim()
    const { report } = options
    this.#server = new BusServer(connection, this.#tree(), this.#guard, machineId, this.#flood, report)
  }

  async start(): Promise<void> {
    await this.#callers.start()
    this.#server.start()
    this.#announce().catch(this.#options.report)
    // DBUS_NAME_FLAG_DO_NOT_QUEUE: a second daemon must fail, not wait to take over.
    const [result] = await this.#connection.callBus('RequestName', 'su', [BUS_NAME, 4])
    if (Number(result) !== 1)
      throw new PuzzledError('state-locked', `Another process owns ${BUS_NAME} on the bus`, {
        hint: 'A daemon runs already: systemctl status puzzled',
      })
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#pages.close()
    await this.#sessions.close()
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
        if (!isBranchId(id)) return undefined
        if (!(await this.#exists(id))) return this.#gone(id)
        const object = branchObject(id, this.#engineFor, extras, () => this.#root.show(id))
        // It may end, and be gone, while somebody's call to it is looked at.
        const properties = () =>
          object.properties().catch((error: unknown) => {
            const gone = this.#gone(id)
            if (gone === undefined) throw error
            return gone.properties()
          })
        return { ...object, properties }
      },
      paths: async () => (await this.#root.list()).map((branch) => branchPath(branch.id)),
    }
  }

  #gone(id: string): BusObject | undefined {
    const gone = this.#options.finished.find(id)
    return gone && goneObject(gone, this.#engineFor)
  }

  async #exists(id: string): Promise<boolean> {
    return (await this.#recordOf(id))?.id === id
  }

  readonly #engineFor: EngineFor = async (caller) =>
    caller.name === ''
      ? this.#root
      : this.#options.engineFor(
          await this.#requesterOf(caller),
          everySoOften(
            (done, total) => this.#server.progress(caller, done, total),
            PROGRESS_MILLIS,
            () => performance.now(),
          ),
        )

  readonly #guard: Guard = {
    outside: (caller, what) => this.#onRecord(caller, what, (credentials) => refuseInside(credentials)),
    sees: async (caller, object) =>
      object.face !== BRANCH ||
      maySee(await this.#callers.of(caller.name), await this.#options.groups(), await ownerOf(object)),
    admit: (caller, object, method, { action }) =>
      this.#onRecord(caller, `${object.face.name}.${method}`, async (credentials) => {
        const owner = object.face === BRANCH ? await ownerOf(object) : null
        const ask = (about: BusAction) => this.#polkit.check(caller, about)
        await authorize(credentials, await this.#options.groups(), { action, owner }, ask)
      }),
  }

  /** Who is refused what is on record. */
  async #onRecord(
    caller: Caller,
    what: string,
    check: (credentials: Credentials) => Promise<void> | void,
  ): Promise<void> {
    let uid: number | null = null
    try {
      const credentials = await this.#callers.of(caller.name)
      uid = credentials.uid
      await check(credentials)
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
      takeStreams: async (caller, stdio) =>
        await this.#options.takeStreams(await this.#callers.of(caller.name), stdio),
      offer: (session, owner, terminal) => this.#sessions.offerAgent(session, owner, terminal),
      finishWhenOver: (engine, session) => {
        const finish = async (): Promise<void> => {
          // A daemon that stops ends its agents; what they were asked to do then is a person's to say.
          if (!this.#stop.signal.aborted) await engine.finish(session.id)
        }
        session.exited.then(finish).catch(this.#options.report)
      },
      finished: () => this.#options.finished.all(),
      reload: () => this.#options.reload(),
      features: new Recent(FEATURES_MILLIS),
      blame: async (path, most, sees) => {
        // One reading of the log at a time, whoever asks: it may be long.
        const found = await this.#readings.run('', () => this.#options.blame(path, MOST_BLAMED))
        return provenanceFor(path, found, sees, Math.max(1, Math.min(most, MOST_BLAMED)))
      },
      sight: async (caller) => {
        const credentials = await this.#callers.of(caller.name)
        const groups = await this.#options.groups()
        return (uid) => maySee(credentials, groups, uid)
      },
    }
  }

  #branchExtras(): BranchExtras {
    return {
      pages: this.#pages,
      resize: (id, columns, rows) => this.#sessions.resize(id, columns, rows),
      attach: (id) => this.#sessions.attach(id),
      exec: async (engine, caller, id, request) => {
        const credentials = await this.#callers.of(caller.name)
        const { stdio, close } = await this.#options.takeStreams(credentials, request.stdio)
        try {
          const session = await engine.exec(id, { ...request, stdio })
          return await this.#sessions.offerCommand(id, session, credentials.uid)
        } finally {
          close()
        }
      },
      approve: async (engine, caller, id, [digest, only, except, why]) =>
        engine.approve(id, {
          by: await this.#requesterOf(caller),
          digest: digest === '' ? null : String(digest),
          selection: selectionOf(only, except),
          why: String(why),
        }),
    }
  }

  /**
   * Every event goes out as a signal; moves also as property changes of the branch object. Signals are addressed: what
   * somebody's agent does is nobody else's business, so they reach who has called and may see the branch.
   */
  async #announce(): Promise<void> {
    for await (const event of this.#root.events({ branch: null }, this.#stop.signal)) {
      // One branch whose record is damaged must not make the daemon silent about all others.
      await this.#announceOne(event).catch(this.#options.report)
    }
  }

  async #announceOne(event: PuzzledEvent): Promise<void> {
    const record = (await this.#recordOf(event.branch)) ?? this.#seen.get(event.branch)
    if (record === undefined) return
    if (isTerminal(record.state) || (event.kind === 'state' && isTerminal(event.to)))
      this.#seen.delete(event.branch)
    else this.#seen.set(event.branch, record)
    const groups = await this.#options.groups()
    for (const [to, credentials] of await this.#callers.known())
      if (maySee(credentials, groups, record.requester.uid)) this.#tell(to, event, record)
  }

  /** Null for a branch that was removed meanwhile: nobody is left who could look at it. */
  async #recordOf(id: string): Promise<BranchRecord | null> {
    try {
      return await this.#root.show(id)
    } catch (error) {
      if (error instanceof PuzzledError && error.code === 'branch-unknown') return null
      throw error
    }
  }

  #tell(to: string, event: PuzzledEvent, record: BranchRecord): void {
    const manager = { to, path: MANAGER_PATH, face: MANAGER_INTERFACE }
    this.#connection.signal({ ...manager, member: 'Event', signature: 'a{sv}', body: [toEntries(event)] })
    if (event.kind !== 'state') return
    const path = branchPath(event.branch)
    const { from, reason } = event
    const body = [from, event.to, reason]
    const branch = { to, path, face: BRANCH_INTERFACE }
    this.#connection.signal({ ...branch, member: 'StateChanged', signature: 'sss', body })
    const properties = branchProperties(record)
    this.#server.propertiesChanged(to, path, BRANCH, properties)
    const about = { ...manager, signature: 'os', body: [path, event.branch] }
    if (from === 'preparing') {
      this.#server.interfacesAdded(to, path, BRANCH, properties)
      this.#connection.signal({ ...about, member: 'BranchAdded' })
    }
    if (isTerminal(event.to)) {
      this.#server.interfacesRemoved(to, path, BRANCH)
      this.#connection.signal({ ...about, member: 'BranchRemoved' })
    }
  }
}

async function ownerOf(object: {
  properties(): Promise<Readonly<Record<string, readonly [string, unknown]>>>
}): Promise<number> {
  const { Requester: requester } = await object.properties()
  return Number(requester?.[1] ?? -1)
}
