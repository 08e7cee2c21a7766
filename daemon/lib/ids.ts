import { randomFillSync } from 'node:crypto'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type BranchId = Branded<'branch'>
export type CommitId = Branded<'commit'>
export type RequestId = Branded<'request'>
export type ApprovalId = Branded<'approval'>

/** No vowels and nothing that looks like something else: ids are read aloud and typed by people. */
const ALPHABET = '23456789bcdfghjkmnpqrstvwxz'

/** Drawn in one go and each byte used once: thousands of requests a second want an id. */
const drawn = Buffer.alloc(4096)
let used = drawn.length

function random(length: number): string {
  let id = ''
  while (id.length < length) {
    if (used === drawn.length) {
      randomFillSync(drawn)
      used = 0
    }
    const byte = drawn[used++] ?? 0
    // Rejecting the tail keeps every letter equally likely.
    if (byte < ALPHABET.length * 9) id += ALPHABET[byte % ALPHABET.length]
  }
  return id
}

export const newBranchId = (): BranchId => random(10) as BranchId
export const newCommitId = (): CommitId => `c${random(11)}` as CommitId
export const newRequestId = (): RequestId => `r${random(11)}` as RequestId
export const newApprovalId = (): ApprovalId => `a${random(11)}` as ApprovalId

export const isBranchId = (text: string): text is BranchId => /^[2-9b-df-hj-km-np-tv-xz]{10}$/.test(text)
