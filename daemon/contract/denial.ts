// pure
import type { DenialLayer } from './events.ts'

/** Where an agent finds what it was refused. */
export const DENIALS_PATH = '/run/puzzled/denials.jsonl'

/** One refusal, as it is on record for people and for the agent. */
export interface DenialRow {
  time: string
  layer: DenialLayer
  /** What was tried. The agent's words, made printable. */
  subject: string
  rule: string
  message: string
  /** The grant that would help, where there is one. */
  help?: string
}
