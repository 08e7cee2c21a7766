import type { BranchRecord } from '../contract/branch.ts'
import type { Ports } from './ports.ts'

/**
 * Sends what a commit approved when the process that should have sent it ended: the files of such a branch are real and
 * its requests would wait for ever. `landed` names branches whose commit recovery has just finished. A branch that is merely
 * stopped may hold requests of a commit that was undone: those wait for the next review.
 */
export async function resumeRequests(
  ports: Ports,
  record: BranchRecord,
  landed: readonly string[],
): Promise<void> {
  if (record.state !== 'committed' && !landed.includes(record.id)) return
  try {
    const resumed = await ports.outbox.resume(record)
    if (resumed === null) return
    await ports.audit.record('replayed', record.id, { ...resumed, resumed: true })
    if (resumed.problem !== null) warn(ports, record.id, resumed.problem)
  } catch (error) {
    // One queue must not keep a store from being opened; what was not sent stays in it and is shown.
    warn(
      ports,
      record.id,
      `Its requests could not be sent: ${error instanceof Error ? error.message : error}`,
    )
  }
}

const warn = (ports: Ports, branch: string, message: string): void =>
  ports.events.publish({ kind: 'warning', branch, time: ports.clock.now().toISOString(), message })
