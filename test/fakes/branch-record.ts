import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import { plainProfile, plainRecord } from '../fixtures/records.ts'

export const PROFILE: Profile = plainProfile({
  name: 'test',
  home: 'private',
  gate: { ...plainProfile().gate, maxFiles: 1000, maxBytes: 1e9, maxDeletions: 1000 },
})

/** A record as `fork` writes it. */
export const branchRecord = (id: string, change: Partial<BranchRecord> = {}): BranchRecord =>
  plainRecord(id, {
    state: 'preparing',
    reason: 'being made',
    profile: { name: 'test', sha256: '0'.repeat(64), resolved: PROFILE },
    command: ['true'],
    afterwards: 'gate',
    ...change,
  })
