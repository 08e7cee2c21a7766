import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Requester } from './contract/branch.ts'
import type { ExplainedPlan } from './contract/plan.ts'
import { PuzzledError } from './lib/errors.ts'
import { ProfileStore } from './policy/profiles.ts'
import { explainPlan } from './sandbox/explain.ts'
import { spawnPlan } from './sandbox/spawn-plan.ts'
import { checkCommand, checkDirectory } from './sandbox/start-error.ts'
import { environmentOf, worldGrants, worldOf } from './sandbox/world.ts'

export interface ExplainRequest {
  readonly profile: string
  readonly bases: readonly string[]
  readonly cwd: string
  readonly command: readonly string[]
  readonly requester: Requester
  readonly home: string | null
}

/**
 * The exact system calls of a start, without making any of them: it needs no rights, and works where the start itself
 * would be refused. Places that exist only at run time (layers, descriptors) are named.
 */
export async function explainRun(request: ExplainRequest): Promise<ExplainedPlan> {
  checkCommand(request.command, {})
  const { profile } = await new ProfileStore().resolve(
    request.profile,
    request.home === null ? {} : { home: request.home },
  )
  const bases = request.bases.map(canonical)
  const cwd = canonical(request.cwd)
  const layers = bases.map((base, index) => {
    const layer = join('/var/lib/puzzled/branches/ID/layers/001', String(index))
    return { base, lowers: [base], upper: join(layer, 'upper'), work: join(layer, 'work') }
  })
  checkDirectory(cwd, layers)
  const record = {
    id: 'ID',
    requester: request.requester,
    bases: bases.map((path) => ({ path, dev: 0, filesystem: '', nested: [] })),
  }
  const world = worldOf(record, profile, layers, null)
  const named = (slot: string) => ({ slot })
  const plan = spawnPlan({
    ...world,
    requester: request.requester,
    hostname: `puzzle-${record.id}`,
    cwd,
    argv: request.command,
    environment: environmentOf(world, {}, false),
    terminal: false,
    descriptors: {
      init: named('init'),
      status: 3,
      stdio: [named('input'), named('output'), named('errors')],
      terminals: named('terminals'),
      denials: named('list of denials'),
      ownerMap: world.identity.shift === null ? null : named('map of owners'),
      network: profile.network.mode === 'none' ? null : named('network of the branch'),
    },
  })
  return {
    profile: profile.name,
    command: request.command,
    namespaces: plan.namespaces,
    steps: explainPlan(plan),
    grants: [...worldGrants(world), ...plan.grants],
  }
}

function canonical(path: string): string {
  try {
    return realpathSync(path)
  } catch (cause) {
    throw new PuzzledError('base-invalid', `"${path}" does not exist`, { cause })
  }
}
