// pure

/** One directory as the agent sees it: the same directory in every layer that contributes, topmost first. */
export interface Level {
  uppers: readonly number[]
  /** What the base has at this path, to compare with. */
  below: number | null
  /** Whether the base shows through; not below an opaque directory. */
  merged: boolean
  path: Buffer
  depth: number
}

/** A name of a level: which of the layers have it, topmost first, and as what. */
export interface Entry {
  name: Buffer
  found: { layer: number; type: number }[]
}

/** Names of one directory that a walk looks at one after the other, in whatever order: `gone` are those that only the base has. */
export interface Round {
  base: number
  level: Level
  entries: readonly Entry[]
  gone: boolean
}

/** One round as one walker sees it. Descriptors of its level stay open until `leave` returned. */
export interface Turn {
  /** The next entry that nobody has looked at. */
  next(): Entry | undefined
  /** Whether another walker saw a name come, go or change its type; throws what that one threw. */
  end(): boolean
  /** After `end`, or instead of it where something failed: afterwards nobody else works in this round. */
  leave(): void
}

/** Whoever walks beside a walk. */
export interface Company {
  begin(round: Round): Turn
}

export const ALONE: Company = {
  begin: ({ entries }) => {
    let at = 0
    return { next: () => entries[at++], end: () => false, leave: () => undefined }
  },
}
