import type { BranchRecord } from '../contract/branch.ts'
import { BRANCH } from '../contract/bus.ts'
import { toEntries, type Variant } from '../contract/bus-values.ts'
import type { CommandRequest, Engine, QueueAction } from '../contract/engine.ts'
import { BUDGET_KINDS, type BudgetKind } from '../contract/profile.ts'
import { unknownBranch } from '../lib/branch-name.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type ChangePages, type PageRequest, requireOnePage } from './change-pages.ts'
import { queueEditOf } from './queue-edit.ts'
import { commandRequestOf, pickRequestOf } from './requests.ts'
import type { BusObject, Caller } from './server.ts'

/** The engine on behalf of the caller of one method. */
export type EngineFor = (caller: Caller) => Promise<Engine>
type Method = (engine: Engine, id: string, body: readonly unknown[]) => Promise<readonly unknown[]>

const one = (value: object): readonly unknown[] => [toEntries(value)]
const texts = (value: unknown): string[] => (value as unknown[]).map(String)

/** One entry per method of the interface; the type of the table makes a missing one a compile error. */
const METHODS: Readonly<Record<string, Method>> = {
  Finish: async (engine, id) => one(await engine.finish(id)),
  Show: async (engine, id) => one(await engine.show(id)),
  Changes: async (engine, id) => one(requireOnePage(await engine.changes(id))),
  Select: async (engine, id, [only, except]) =>
    one(requireOnePage(await engine.changes(id, { only: texts(only), except: texts(except) }))),
  Content: async (engine, id, [base, path, limit]) =>
    one(
      await engine.content(
        id,
        Number(base),
        Buffer.from(path as Uint8Array),
        Math.min(Number(limit), 16 << 20),
      ),
    ),
  Output: async (engine, id, [cursor, limit]) => one(await engine.output(id, Number(cursor), Number(limit))),
  Review: async (engine, id) => one(await engine.review(id)),
  Commit: async (engine, id, [only, except]) =>
    one(await engine.commit(id, selectionOf(only, except) ?? undefined)),
  Rebase: async (engine, id, [ours, theirs, drop]) =>
    one(await engine.rebase(id, { ours: texts(ours), theirs: texts(theirs), drop: texts(drop) })),
  Pick: async (engine, id, [request]) => one(await engine.pick(id, pickRequestOf(request))),
  Reject: async (engine, id, [why]) => one(await engine.reject(id, String(why))),
  Discard: async (engine, id) => one(await engine.discard(id)),
  Signal: async (engine, id, [name]) => {
    const { terminated, survivors } = await engine.signal(id, String(name))
    return [terminated, survivors]
  },
  Freeze: async (engine, id) => one(await engine.freeze(id)),
  Usage: async (engine, id) => one(await engine.usage(id)),
  Denials: async (engine, id) => [(await engine.denials(id)).map((row) => toEntries(row))],
  Queue: async (engine, id) => [(await engine.queue(id)).map((view) => toEntries(view))],
  QueueAct: async (engine, id, [request, action, why]) =>
    one(await engine.queueAct(id, String(request), queueAction(action), String(why))),
  QueueBody: async (engine, id, [request, limit]) =>
    one(await engine.queueBody(id, String(request), Math.min(Number(limit), 16 << 20))),
  QueueEdit: async (engine, id, [request, edit, why]) =>
    one(await engine.queueEdit(id, String(request), queueEditOf(edit), String(why))),
  NetTest: async (engine, id, [method, url]) => one(await engine.netTest(id, String(method), String(url))),
  Extend: async (engine, id, [kind, by]) => one(await engine.extend(id, budgetKind(kind), Number(by))),
  Thaw: async (engine, id) => one(await engine.thaw(id)),
}

function queueAction(text: unknown): QueueAction {
  if (text === 'drop' || text === 'resume' || text === 'skip') return text
  throw new PuzzledError('usage', `"${String(text)}" is nothing to do with a request`, {
    hint: 'drop, resume or skip',
  })
}

function budgetKind(text: unknown): BudgetKind {
  const kind = BUDGET_KINDS.find((known) => known === text)
  if (kind === undefined)
    throw new PuzzledError('usage', `There is no budget "${String(text)}"`, {
      hint: `Known: ${BUDGET_KINDS.join(', ')}`,
    })
  return kind
}

export interface BranchExtras {
  readonly pages: ChangePages
  resize(id: string, columns: number, rows: number): void
  attach(id: string): { path: string; terminal: boolean }
  /** The path of the command's socket. */
  exec(engine: Engine, caller: Caller, id: string, request: CommandRequest): Promise<string>
  approve(engine: Engine, caller: Caller, id: string, body: readonly unknown[]): Promise<object>
}

export function selectionOf(only: unknown, except: unknown): { only: string[]; except: string[] } | null {
  const selection = { only: texts(only), except: texts(except) }
  return selection.only.length + selection.except.length === 0 ? null : selection
}

const pageRequestOf = ([only, except, digest, from, limit]: readonly unknown[]): PageRequest => ({
  selection: selectionOf(only, except),
  ...{ digest: String(digest), from: Number(from), limit: Number(limit) },
})

export function branchObject(
  id: string,
  engineFor: EngineFor,
  extras: BranchExtras,
  read: () => Promise<BranchRecord>,
): BusObject {
  return {
    face: BRANCH,
    call: async (method, body, caller) => {
      const engine = await engineFor(caller)
      if (method === 'Approve') return one(await extras.approve(engine, caller, id, body))
      if (method === 'Resize') {
        extras.resize(id, Number(body[0]), Number(body[1]))
        return []
      }
      if (method === 'Exec') return [await extras.exec(engine, caller, id, commandRequestOf(body[0]))]
      if (method === 'Attach') {
        const { path, terminal } = extras.attach(id)
        return [path, terminal]
      }
      if (method === 'ChangesPage') return one(await extras.pages.page(engine, id, pageRequestOf(body)))
      const act = METHODS[method]
      if (act === undefined) throw new Error(`The branch object lacks ${method}`)
      return act(engine, id, body)
    },
    properties: async () => branchProperties(await read()),
  }
}

/** A branch that has ended and is no more: how it ended can be asked for, everything else is refused. */
export const goneObject = (
  { id, name, uid }: { id: string; name: string | null; uid: number },
  engineFor: EngineFor,
): BusObject => ({
  face: BRANCH,
  call: async (method, _body, caller) => {
    if (method === 'Finish') return one(await (await engineFor(caller)).finish(id))
    throw unknownBranch(id)
  },
  properties: async () => ({
    Id: ['s', id],
    Name: ['s', name ?? ''],
    State: ['s', 'discarded'],
    Requester: ['u', uid],
  }),
})

export function branchProperties(record: BranchRecord): Record<string, Variant> {
  return {
    Id: ['s', record.id],
    Name: ['s', record.name ?? ''],
    State: ['s', record.state],
    Reason: ['s', record.reason],
    Profile: ['s', record.profile.name],
    Command: ['as', [...record.command]],
    Bases: ['as', record.bases.map((base) => base.path)],
    Requester: ['u', record.requester.uid],
    Created: ['s', record.createdAt],
    Updated: ['s', record.updatedAt],
    Digest: ['s', record.digest ?? ''],
    Verdict: ['s', record.verdict?.kind ?? ''],
    Commit: ['s', record.commit?.id ?? ''],
    ExitStatus: ['i', record.exit?.code ?? -1],
  }
}
