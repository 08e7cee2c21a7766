// pure
/** Who can refuse something to an agent. */
export const DENIAL_LAYERS = [
  'landlock',
  'seccomp',
  'lsm',
  'nft',
  'proxy',
  'dns',
  'quota',
  'budget',
  'policy',
] as const
export type DenialLayer = (typeof DENIAL_LAYERS)[number]

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
