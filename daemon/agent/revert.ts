import type { Requester } from '../contract/branch.ts'
import type { Outcome } from '../contract/engine.ts'
import { NO_CHANGES } from './outcome.ts'
import type { Ports } from './ports.ts'

/** Lands the reverse of a commit through the same path and with the same checks as any commit. */
export async function revertCommit(ports: Ports, commit: string, requester: Requester): Promise<Outcome> {
  await ports.audit.record('revert', commit, { requester: requester.uid })
  const landed = await ports.committer.revert(commit, requester)
  await ports.audit.record('reverted', commit, {
    by: landed.commit,
    digest: landed.digest,
    files: landed.files,
  })
  return {
    branch: commit,
    name: null,
    state: 'committed',
    exit: null,
    totals: { ...NO_CHANGES, files: landed.files },
    requests: 0,
    digest: landed.digest,
    verdict: null,
    commit: landed.commit,
    conflicts: [],
    warnings: landed.warnings,
    reason: `reverted ${commit}`,
  }
}
