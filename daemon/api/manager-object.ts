import type { Requester } from '../contract/branch.ts'
import { branchPath, MANAGER } from '../contract/bus.ts'
import { toEntries, toVariant } from '../contract/bus-values.ts'
import type { AgentSession, Engine, RunRequest, SessionStdio, TakenStreams } from '../contract/engine.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import type { FeatureRow } from '../contract/features.ts'
import { isTerminal } from '../contract/states.ts'
import { branchNamed } from '../lib/branch-name.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { EngineFor } from './branch-object.ts'
import type { Recent } from './recent.ts'
import { createRequestOf, runRequestOf } from './requests.ts'
import type { BusObject, Caller } from './server.ts'

export interface ManagerExtras {
  version: string
  requesterOf(caller: Caller): Promise<Requester>
  /** The streams of the calling process, as this one can use them. */
  takeStreams(caller: Caller, stdio: SessionStdio): Promise<TakenStreams>
  /** Offers the session's terminal or pipes to its owner; the path of the socket, or empty. */
  offer(session: AgentSession, owner: number, terminal: boolean): Promise<string>
  /** The agent's branch is finished when it has ended, also when its caller has gone meanwhile. */
  finishWhenOver(engine: Engine, session: AgentSession): void
  /** Branches that are gone and of whose end can still be told. */
  finished(): readonly { readonly id: string; readonly name: string | null; readonly uid: number }[]
  reload(): Promise<void>
  readonly features: Recent<readonly FeatureRow[]>
  /** Of commits that touched a path, what may be told to somebody who sees so much. */
  blame(path: string, most: number, sees: (uid: number) => boolean): Promise<readonly object[]>
  /** Whether this caller may see the branches of that uid. */
  sight(caller: Caller): Promise<(uid: number) => boolean>
}

export function managerObject(engineFor: EngineFor, extras: ManagerExtras): BusObject {
  return {
    face: MANAGER,
    call: async (method, body, caller) => callManager(await engineFor(caller), extras, method, body, caller),
    properties: async () => {
      const engine = await engineFor({ name: '' })
      const open = (await engine.list()).filter((branch) => !isTerminal(branch.state))
      return { Version: ['s', extras.version], Branches: ['u', open.length] }
    },
  }
}

async function callManager(
  engine: Engine,
  extras: ManagerExtras,
  method: string,
  body: readonly unknown[],
  caller: Caller,
): Promise<readonly unknown[]> {
  switch (method) {
    case 'CreateBranch': {
      const record = await engine.create(createRequestOf(body[0], await extras.requesterOf(caller)))
      return [branchPath(record.id)]
    }
    case 'Run':
      return startRun(engine, extras, runRequestOf(body[0], await extras.requesterOf(caller)), caller)
    case 'ListBranches': {
      const sees = await extras.sight(caller)
      return [(await engine.list()).filter(({ uid }) => sees(uid)).map((branch) => toEntries(branch))]
    }
    case 'GetBranch':
      return [branchPath(await visibleBranch(engine, extras, await extras.sight(caller), String(body[0])))]
    case 'Revert':
      return [toEntries(await engine.revert(String(body[0])))]
    case 'Events':
      return [
        (await visibleEvents(engine, extras, await extras.sight(caller))).map((event) => toEntries(event)),
      ]
    case 'Blame': {
      const commits = await extras.blame(blamedPath(body[0]), Number(body[1]), await extras.sight(caller))
      return [commits.map((commit) => toEntries(commit))]
    }
    case 'Doctor':
      return [(await extras.features.get(() => engine.features())).map((row) => toEntries(row))]
    case 'Probe':
      return [(await extras.features.renew(() => engine.features())).map((row) => toEntries(row))]
    case 'Collect':
      return [toEntries(await engine.collect())]
    case 'Reload':
      await extras.reload()
      return []
    default:
      throw new Error(`The manager object lacks ${method}`)
  }
}

/** As the log has them. Whoever asks has found out what a link stands for. */
function blamedPath(value: unknown): string {
  const path = String(value)
  if (path.startsWith('/') && path.length <= 4096 && !path.includes('\0'))
    return path.length > 1 ? path.replace(/\/+$/, '') : path
  throw new PuzzledError('usage', 'A path that is blamed is absolute and has at most 4096 characters')
}

/** Among those that the caller may see: an ambiguous name must not betray the ids of others. */
async function visibleBranch(
  engine: Engine,
  extras: ManagerExtras,
  sees: (uid: number) => boolean,
  text: string,
): Promise<string> {
  const mine = (await engine.list()).filter(({ uid }) => sees(uid))
  try {
    return branchNamed(text, mine)
  } catch (error) {
    if (!(error instanceof PuzzledError) || error.code !== 'branch-unknown') throw error
    return branchNamed(
      text,
      extras.finished().filter(({ uid }) => sees(uid)),
    )
  }
}

/** No uid of anybody: of a branch that went long ago nobody knows whose it was, and only who may see all of them hears of it. */
const NOBODY = -1

async function visibleEvents(
  engine: Engine,
  extras: Pick<ManagerExtras, 'finished'>,
  sees: (uid: number) => boolean,
): Promise<readonly PuzzledEvent[]> {
  // What an agent without changes ran into is all that is left of its branch.
  const owners = new Map([...extras.finished(), ...(await engine.list())].map(({ id, uid }) => [id, uid]))
  const events = await engine.recentEvents({ branch: null })
  return events.filter(({ branch }) => sees(owners.get(branch) ?? NOBODY))
}

async function startRun(
  engine: Engine,
  extras: ManagerExtras,
  request: RunRequest,
  caller: Caller,
): Promise<readonly unknown[]> {
  const taken = await extras.takeStreams(caller, request.stdio)
  try {
    const session = await engine.run({ ...request, stdio: taken.stdio })
    if (request.unattended !== true) extras.finishWhenOver(engine, session)
    const socket = await extras.offer(session, request.requester.uid, request.stdio.kind === 'pty')
    return [branchPath(session.id), socket, session.grants.map(toVariant)]
  } finally {
    taken.close()
  }
}
