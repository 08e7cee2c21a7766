import { createPublicKey } from 'node:crypto'
import { serveCalls } from '../lib/worker-side.ts'
import { checkPart, type Question } from './parts.ts'

/** Hashing is all that takes time in a verification: one thread for each processor. */
serveCalls({
  check: ({ question, key, segment }: { question: Question; key: string; segment: number }) =>
    checkPart(question, createPublicKey(key), segment),
})
