import type { BranchRecord } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { DenialRow } from '../contract/denial.ts'
import type {
  BranchSummary,
  BranchUsage,
  ContentPair,
  EngineReader,
  OutputPart,
  QueuedView,
  Selection,
} from '../contract/engine.ts'
import type { ReadingPorts } from './ports.ts'
import { changesetOf } from './review.ts'

/** Of one answer, so that a caller cannot ask the daemon for everything at once. */
const MOST_OUTPUT_BYTES = 1 << 20

/** What can be asked without changing anything. Nothing here takes a lock, sweeps or recovers: the store may be another's. */
export class BranchReader implements EngineReader {
  readonly #ports: ReadingPorts
  readonly #release: () => Promise<void>

  constructor(ports: ReadingPorts, release: () => Promise<void>) {
    this.#ports = ports
    this.#release = release
  }

  async list(): Promise<readonly BranchSummary[]> {
    const records = await this.#ports.store.list()
    return records.map(summaryOf).sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  }

  async show(id: string): Promise<BranchRecord> {
    return this.#ports.store.read(await this.#ports.store.resolve(id))
  }

  async changes(id: string, selection?: Selection): Promise<Changeset> {
    const whole = await changesetOf(this.#ports, await this.show(id))
    return selection === undefined ? whole : this.#ports.differ.select(whole, selection)
  }

  async content(id: string, base: number, path: Uint8Array, limit: number): Promise<ContentPair> {
    const record = await this.show(id)
    // Whoever looks sees what the requester could see: nobody reads a file through root's eyes.
    return this.#ports.differ.content(record, base, path, limit, record.requester)
  }

  async output(id: string, cursor: number, limit: number): Promise<OutputPart> {
    // The state first: what an agent wrote before it ended must not be missed.
    const { id: branch, state } = await this.show(id)
    const part = await this.#ports.outputs.read(branch, cursor, Math.min(limit, MOST_OUTPUT_BYTES))
    const running = state === 'running' || state === 'frozen' || state === 'preparing' || state === 'ready'
    return { ...part, ended: !running && part.entries.length === 0 }
  }

  async queue(id: string): Promise<readonly QueuedView[]> {
    return this.#ports.outbox.view(await this.show(id))
  }

  /** Whoever holds the agent is another process. */
  async usage(id: string): Promise<BranchUsage> {
    await this.#ports.store.resolve(id)
    return { budgets: {}, pressure: {} }
  }

  async denials(id: string): Promise<readonly DenialRow[]> {
    return this.#ports.denials.list(await this.#ports.store.resolve(id))
  }

  close(): Promise<void> {
    return this.#release()
  }
}

function summaryOf(record: BranchRecord): BranchSummary {
  return {
    id: record.id,
    name: record.name,
    state: record.state,
    reason: record.reason,
    profile: record.profile.name,
    command: record.command,
    bases: record.bases.map((base) => base.path),
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    requester: record.requester.name,
    uid: record.requester.uid,
  }
}
