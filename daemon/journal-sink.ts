import { existsSync } from 'node:fs'
import type { PuzzledEvent } from './contract/events.ts'
import { JOURNAL_SOCKET, sendToJournal } from './kernel/journald.ts'

export type JournalFields = Readonly<Record<string, string>>

/** A journal that does not keep up loses our records before it makes us wait; how many is told. */
const MOST_WAITING = 2_000
const MOST_VALUE = 8 << 10

/**
 * The system's journal as one more reader of events and of the audit log. It is a copy: where there is no journal, or it
 * fails, nothing else is affected and nothing is lost elsewhere.
 */
export class JournalSink {
  readonly #send: (fields: JournalFields) => Promise<void>
  readonly #waiting: JournalFields[] = []
  #lost = 0
  #sending: Promise<void> | null = null

  constructor(send: (fields: JournalFields) => Promise<void> = sendToJournal) {
    this.#send = send
  }

  /** Null where no journal listens. */
  static find(socket = JOURNAL_SOCKET): JournalSink | null {
    return existsSync(socket) ? new JournalSink() : null
  }

  take(event: PuzzledEvent): void {
    // States and commits come with the audit record that says more; what only events say goes on from here.
    if (event.kind !== 'denial' && event.kind !== 'warning' && event.kind !== 'budget') return
    this.#enqueue(event.kind, event.branch, { ...event })
  }

  /** A record of the audit log, once it is on disk. */
  audit(seq: number, kind: string, branch: string, facts: Readonly<Record<string, unknown>>): void {
    this.#enqueue(kind, branch, { ...facts, audit_seq: seq })
  }

  /** Everything that was taken has been handed over, or has failed. */
  async flush(): Promise<void> {
    await this.#sending
  }

  #enqueue(kind: string, branch: string, facts: Readonly<Record<string, unknown>>): void {
    if (this.#waiting.length >= MOST_WAITING) this.#lost++
    else this.#waiting.push(fieldsOf(kind, branch, facts))
    this.#sending ??= this.#drain()
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const lost = this.#lost
      this.#lost = 0
      const fields = lost === 0 ? next : { ...next, PUZZLED_LOST: String(lost) }
      // Whoever reads the journal sees the gap in PUZZLED_LOST; there is nobody else to tell about the journal.
      await this.#send(fields).catch(() => {
        this.#lost += lost + 1
      })
    }
    this.#sending = null
  }
}

const PRIORITY: Readonly<Record<string, string>> = { denial: '5', denied: '4', warning: '4', stuck: '3' }

/** Names are ours; whatever an agent chose is in values, which cannot end a field. */
export function fieldsOf(
  kind: string,
  branch: string,
  facts: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const fields: Record<string, string> = {
    MESSAGE: messageOf(kind, branch, facts),
    PRIORITY: PRIORITY[kind] ?? '6',
    SYSLOG_IDENTIFIER: 'puzzled',
    PUZZLED_KIND: kind,
    ...(branch === '' ? {} : { PUZZLED_BRANCH: branch }),
  }
  for (const [name, value] of Object.entries(facts)) {
    const field = `PUZZLED_${name.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()}`
    if (!(field in fields) && /^[A-Z][A-Z0-9_]{0,63}$/.test(field)) fields[field] = textOf(value)
  }
  return fields
}

const textOf = (value: unknown): string =>
  (typeof value === 'string' ? value : (JSON.stringify(value, bigints) ?? '')).slice(0, MOST_VALUE)

const bigints = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value

const messageOf = (kind: string, branch: string, facts: Readonly<Record<string, unknown>>): string =>
  [kind, branch, textOf(facts.layer ?? ''), textOf(facts.subject ?? ''), textOf(facts.message ?? '')]
    .filter((part) => part !== '')
    .join(' ')
