import type { BranchRecord, Requester } from '../contract/branch.ts'
import type { CreateRequest } from '../contract/engine.ts'
import type { Features } from '../contract/features.ts'
import { BUDGET_KINDS, type BudgetKind, type Profile, SMALLEST_MEMORY } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'
import { newBranchId } from '../lib/ids.ts'
import { UndoStack } from '../lib/undo.ts'
import type { Ports } from './ports.ts'

/** Creates a branch over the bases. Whatever fails, no half-made branch stays. */
export async function forkBranch(ports: Ports, request: CreateRequest): Promise<BranchRecord> {
  const { profile, sha256, overlays } = await ports.profiles.resolve(request.profile, request.requester)
  if (profile.require.length > 0) refuseMissingFeatures(profile, await ports.features(profile.require))
  await refuseTakenName(ports, request.name, request.requester)
  const resolved = narrowBudgets(profile, request.budgets)
  const bases = withOverlays(request.bases, overlays)
  return makeBranch(ports, { ...request, bases }, { name: resolved.name, sha256, resolved })
}

/**
 * The bases that were asked for and those of the profile. A project in a home that the profile overlays is seen through
 * the home: two overlays of one file would be two truths.
 */
export function withOverlays(asked: readonly string[], overlays: readonly string[]): string[] {
  const covered = (path: string, by: readonly string[]): boolean =>
    by.some((outer) => path.startsWith(outer === '/' ? outer : `${outer}/`))
  const own = asked.filter((path) => !covered(path, overlays))
  return [
    ...own,
    ...new Set(overlays.filter((path) => !own.includes(path) && !covered(path, [...own, ...overlays]))),
  ]
}

/**
 * What a branch that takes another one's place brings with it. `fill` works in its layers before it counts as made: a
 * crash in the middle leaves nothing that somebody could take for the whole.
 */
export type Origin = { since: Date; fill?: (record: BranchRecord) => Promise<void> } & Pick<
  BranchRecord,
  'parent' | 'exit'
>

/** Creates a branch with a profile that was resolved. */
export async function makeBranch(
  ports: Ports,
  request: Omit<CreateRequest, 'profile' | 'budgets'>,
  profile: BranchRecord['profile'],
  origin: Origin = { since: ports.clock.now(), parent: null, exit: null },
): Promise<BranchRecord> {
  const record = newRecord(request, profile, origin)
  const undo = new UndoStack()
  try {
    await ports.store.create(record)
    undo.push('create branch', () => abandon(ports, record.id))
    const { requester } = request
    const { bases, grants, clock } = await ports.layers.prepare(
      record.id,
      request.bases,
      profile.resolved,
      requester,
    )
    const prepared = { bases, grants, layers: 1, ...(clock === undefined ? {} : { clock }) }
    await origin.fill?.({ ...record, ...prepared })
    const ready = await ports.store.move(record.id, 'ready', 'layers are made', prepared)
    await ports.audit.record('fork', record.id, {
      name: record.name,
      profile: profile.name,
      profileSha256: profile.sha256,
      parent: origin.parent,
      bases: bases.map((base) => base.path),
      requester: requester.uid,
      command: request.command,
    })
    undo.keep()
    return ready
  } catch (error) {
    throw await undo.unwindAfter(error)
  }
}

async function abandon(ports: Ports, id: string): Promise<void> {
  await ports.store.move(id, 'discarding', 'it could not be prepared')
  await ports.store.discard(id)
}

function newRecord(
  request: Omit<CreateRequest, 'profile' | 'budgets'>,
  profile: BranchRecord['profile'],
  { since, parent, exit }: Origin,
): BranchRecord {
  const at = since.toISOString()
  return {
    version: 1,
    id: newBranchId(),
    name: request.name,
    state: 'preparing',
    reason: 'being created',
    createdAt: at,
    updatedAt: at,
    requester: request.requester,
    bases: request.bases.map((path) => ({ path, dev: 0, filesystem: '', nested: [] })),
    profile,
    command: request.command,
    cwd: request.cwd,
    afterwards: request.afterwards,
    layers: 0,
    parent,
    exit,
    grants: [],
    digest: null,
    verdict: null,
    commit: null,
    extensions: {},
  }
}

/** A feature that the profile requires and the host lacks is a refusal, never a weaker sandbox. */
export function refuseMissingFeatures(profile: Profile, features: Partial<Features>): void {
  for (const name of profile.require) {
    const row = features[name]
    if (row?.state === 'have') continue
    const detail = row?.detail ?? 'it was not probed'
    throw new PuzzledError('feature-missing', `Profile "${profile.name}" requires ${name}: ${detail}`, {
      ...(row === undefined || row.remedy === '' ? {} : { hint: row.remedy }),
      data: { feature: name, state: row?.state ?? 'missing' },
    })
  }
}

/** Names are each requester's own: nobody learns of, or takes away, the names of others. */
async function refuseTakenName(ports: Ports, name: string | null, { uid }: Requester): Promise<void> {
  if (name === null) return
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/i.test(name))
    throw new PuzzledError('usage', `"${name}" cannot be the name of a branch`, {
      hint: 'Use letters, digits, dot, dash and underscore, at most 63, beginning with a letter or digit.',
    })
  for (const other of await ports.store.list())
    if (
      other.name === name &&
      other.requester.uid === uid &&
      other.state !== 'discarded' &&
      other.state !== 'committed'
    )
      throw new PuzzledError('usage', `Branch ${other.id} is called "${name}" already`, {
        hint: `Choose another name, or: puzzlectl discard ${name}`,
      })
}

/** Limits of the command line may only be lower than the profile's. */
export function narrowBudgets(profile: Profile, asked: Readonly<Record<string, number>>): Profile {
  const limits: Partial<Record<BudgetKind, number>> = { ...profile.budgets.limits }
  for (const [kind, value] of Object.entries(asked)) {
    if (!isBudgetKind(kind))
      throw new PuzzledError('usage', `There is no budget "${kind}"`, {
        hint: `Known: ${BUDGET_KINDS.join(', ')}`,
      })
    const allowed = limits[kind]
    if (allowed !== undefined && value > allowed)
      throw new PuzzledError('usage', `Budget ${kind}=${value} is more than the profile's ${allowed}`, {
        hint: `Profile "${profile.name}" sets the ceiling; ask for less or use another profile.`,
      })
    if (kind === 'memory' && value < SMALLEST_MEMORY)
      throw new PuzzledError('usage', `Budget memory=${value} is less than an agent needs to start`, {
        hint: `Give it at least memory=${SMALLEST_MEMORY / 1024 ** 2}M.`,
      })
    limits[kind] = value
  }
  return { ...profile, budgets: { ...profile.budgets, limits } }
}

const isBudgetKind = (text: string): text is BudgetKind => (BUDGET_KINDS as readonly string[]).includes(text)
